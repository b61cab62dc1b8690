//! Which registered network a pod is attached to that names none.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::registration::DRAFT;
use crate::failure::{Failure, codes};
use crate::list::NetworkList;
use crate::networks::Networks;

/// What the draft has said of a network.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Selection {
    attachment_selector: HashMap<String, String>,
    is_default: bool,
}

impl Selection {
    /// The network whose selector is part of the labels, else the default one, if there is one.
    ///
    /// # Errors
    /// Code 7: there is more than one.
    pub(super) fn of(
        networks: &Networks,
        labels: &HashMap<String, String>,
    ) -> Result<Option<String>, Failure> {
        // A file that cannot be read is no network; a call that names it is told why.
        let known = networks.names().into_iter().filter_map(|name| networks.read(&name).ok());
        let known: Vec<_> = known.map(|list| (Self::in_list(&list), list.name)).collect();
        let those = |is_it: &dyn Fn(&Self) -> bool| -> Vec<&str> {
            let those = known.iter().filter(|(selection, _)| is_it(selection));
            those.map(|(_, name)| name.as_str()).collect()
        };
        let selecting = those(&|selection| selection.selects(labels));
        let found = if selecting.is_empty() { those(&|selection| selection.is_default) } else { selecting };
        match found.as_slice() {
            [one] => Ok(Some((*one).to_owned())),
            [] => Ok(None),
            many => Err(invalid(&format!("the networks {many:?} all claim the pod: name one"))),
        }
    }

    fn in_list(list: &NetworkList) -> Self {
        let list: Value = serde_json::from_slice(&list.raw).unwrap_or_default();
        Self::deserialize(&list[DRAFT]).unwrap_or_default()
    }

    fn selects(&self, labels: &HashMap<String, String>) -> bool {
        let wanted = &self.attachment_selector;
        !wanted.is_empty() && wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// No network is the pod's.
pub(super) fn unselected() -> Failure {
    invalid("no registered network selects the pod, and none is the default")
}

fn invalid(why: &str) -> Failure {
    Failure::new(codes::INVALID_CONFIG, format!("{why} (`extradata[\"network\"]`)"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn networks(said: &[(&str, Value)]) -> (tempfile::TempDir, Networks) {
        let folder = tempfile::tempdir().unwrap();
        let networks = Networks::in_directory(folder.path());
        for (name, draft) in said {
            let list = json!({ "name": name, "plugins": [{ "type": "shunt" }], "cni.CNI": draft });
            networks.register(&NetworkList::read(list.to_string().as_bytes()).unwrap()).unwrap();
        }
        (folder, networks)
    }

    fn labels(said: &[(&str, &str)]) -> HashMap<String, String> {
        said.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_selector_goes_before_the_default_and_nothing_is_guessed() {
        let (_folder, networks) = networks(&[
            ("plain", Value::Null),
            ("web", json!({ "attachmentSelector": { "tier": "web" } })),
            ("eu", json!({ "attachmentSelector": { "tier": "web", "zone": "eu" } })),
            ("other", json!({ "attachmentSelector": {}, "isDefault": true })),
        ]);
        let of = |said: &[(&str, &str)]| Selection::of(&networks, &labels(said));
        assert_eq!(of(&[("tier", "web"), ("zone", "us")]).unwrap().unwrap(), "web");
        assert_eq!(of(&[]).unwrap().unwrap(), "other");
        assert_eq!(of(&[("tier", "db")]).unwrap().unwrap(), "other");
        let many = of(&[("tier", "web"), ("zone", "eu")]).unwrap_err();
        assert!(many.code == codes::INVALID_CONFIG && many.msg.contains("\"eu\", \"web\""), "{many:?}");
    }

    #[test]
    fn without_a_default_a_pod_without_labels_has_no_network() {
        let (_folder, networks) = networks(&[("plain", Value::Null), ("odd", json!(7))]);
        assert_eq!(Selection::of(&networks, &labels(&[])).unwrap(), None);
    }
}
