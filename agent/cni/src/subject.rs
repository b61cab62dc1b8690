//! Whom a call is about: an attachment, and its sandbox as the runtime describes it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use shunt::call::{check_identifier, check_interface, check_length};

use crate::failure::{Failure, codes};
use crate::proto::v1;

/// An attachment and its sandbox, checked. All of it is empty where a call is about a network alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    pub(crate) container: String,
    pub(crate) ifname: String,
    pub(crate) netns: String,
    /// `CNI_ARGS`, sorted by key.
    pub(crate) args: BTreeMap<String, String>,
    pub(crate) capability_args: Map<String, Value>,
}

impl Subject {
    /// # Errors
    /// Code 4 for names that the specification does not allow, 6 for capabilities that are no JSON object.
    pub(crate) fn of(
        attachment: Option<v1::Attachment>,
        sandbox: Option<v1::Sandbox>,
    ) -> Result<Self, Failure> {
        let environment = |why: String| Failure::new(codes::ENVIRONMENT, why);
        let v1::Attachment { container_id: container, ifname } = attachment.unwrap_or_default();
        check_identifier("container_id", &container).map_err(|error| environment(error.to_string()))?;
        check_interface(&ifname).map_err(|error| environment(error.to_string()))?;
        let v1::Sandbox { netns, args, capability_args } = sandbox.unwrap_or_default();
        let breaks = |text: &str| text.contains([';', '\0']);
        if let Some((key, _)) =
            args.iter().find(|(key, value)| key.contains('=') || breaks(key) || breaks(value))
        {
            return Err(environment(format!(
                "the argument `{key}` has a character that separates arguments"
            )));
        }
        let capability_args = match capability_args.as_slice() {
            [] => Map::new(),
            json => serde_json::from_slice(json).map_err(|error| {
                Failure::new(codes::DECODING, format!("capability_args is not a JSON object: {error}"))
            })?,
        };
        Ok(Self { container, ifname, netns, args: args.into_iter().collect(), capability_args })
    }

    /// Whether there can be such an attachment; of none that cannot be is anything to be deleted.
    ///
    /// # Errors
    /// Code 4.
    pub(crate) fn check_length(&self) -> Result<(), Failure> {
        check_length("container_id", &self.container)
            .map_err(|error| Failure::new(codes::ENVIRONMENT, error.to_string()))
    }

    /// The value of `CNI_ARGS`.
    pub(crate) fn cni_args(&self) -> String {
        self.args.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(";")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(container_id: &str, ifname: &str) -> Option<v1::Attachment> {
        Some(v1::Attachment { container_id: container_id.to_owned(), ifname: ifname.to_owned() })
    }

    #[test]
    fn names_are_the_specification_s() {
        assert!(Subject::of(attachment("c1", "eth0"), None).is_ok());
        for (container, ifname) in
            [("", "eth0"), ("../c", "eth0"), ("c", ""), ("c", "a/b"), ("c", "sixteen-letters-")]
        {
            let refused = Subject::of(attachment(container, ifname), None).unwrap_err();
            assert_eq!(refused.code, codes::ENVIRONMENT, "{container} {ifname}");
        }
        assert_eq!(Subject::of(None, None).unwrap_err().code, codes::ENVIRONMENT);
    }

    #[test]
    fn arguments_cannot_add_arguments() {
        let with = |key: &str, value: &str| v1::Sandbox {
            args: [(key.to_owned(), value.to_owned()), ("IP".to_owned(), "10.0.0.2".to_owned())].into(),
            ..v1::Sandbox::default()
        };
        let of = |key, value| Subject::of(attachment("c", "eth0"), Some(with(key, value)));
        assert_eq!(of("A", "x=y").unwrap().cni_args(), "A=x=y;IP=10.0.0.2");
        for (key, value) in [("A", "x;MAC=y"), ("A=B", "x"), ("A;B", "x"), ("A", "\0")] {
            assert_eq!(of(key, value).unwrap_err().code, codes::ENVIRONMENT, "{key} {value}");
        }
    }

    #[test]
    fn capabilities_are_an_object() {
        let with =
            |json: &str| v1::Sandbox { capability_args: json.as_bytes().to_vec(), ..v1::Sandbox::default() };
        assert!(Subject::of(attachment("c", "eth0"), Some(with("{\"mac\":\"x\"}"))).is_ok());
        for json in ["[]", "{", "null"] {
            let refused = Subject::of(attachment("c", "eth0"), Some(with(json))).unwrap_err();
            assert_eq!(refused.code, codes::DECODING, "{json}");
        }
    }
}
