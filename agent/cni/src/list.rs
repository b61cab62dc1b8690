//! A network configuration list (CNI specification 1.1, section 1), and what each of its plugins is given of it.

use serde_json::{Map, Value};
use shunt::call::{Version, check_identifier};

use crate::failure::{Failure, codes};

/// Plugins of a list.
const MAX_PLUGINS: usize = 32;

/// A list that can be run.
#[derive(Clone, Debug)]
pub(crate) struct NetworkList {
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) plugins: Vec<PluginConfig>,
    /// Without `disableCheck`.
    pub(crate) is_checked: bool,
    /// Without `disableGC`.
    pub(crate) is_collected: bool,
    /// As it came.
    pub(crate) raw: Vec<u8>,
}

/// One plugin's object.
#[derive(Clone, Debug)]
pub(crate) struct PluginConfig {
    /// The plugin's name.
    pub(crate) kind: String,
    object: Map<String, Value>,
}

impl NetworkList {
    /// Reads `{cniVersion, name, plugins}`.
    ///
    /// # Errors
    /// Codes 1, 6 and 7.
    pub(crate) fn read(raw: &[u8]) -> Result<Self, Failure> {
        let list: Map<String, Value> = serde_json::from_slice(raw)
            .map_err(|error| Failure::new(codes::DECODING, format!("the configuration list: {error}")))?;
        let name = text(&list, "name")?.to_owned();
        check_identifier("network name", &name).map_err(|error| invalid(error.to_string()))?;
        let plugins = list.get("plugins").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if plugins.is_empty() || plugins.len() > MAX_PLUGINS {
            return Err(invalid(format!("`plugins` is not a list of 1 to {MAX_PLUGINS} plugins")));
        }
        Ok(Self {
            name,
            version: version(&list)?,
            plugins: plugins.iter().map(PluginConfig::read).collect::<Result<_, _>>()?,
            is_checked: !is_set(&list, "disableCheck")?,
            is_collected: !is_set(&list, "disableGC")?,
            raw: raw.to_vec(),
        })
    }
}

impl PluginConfig {
    fn read(value: &Value) -> Result<Self, Failure> {
        let object = value.as_object().ok_or_else(|| invalid("a plugin is not an object".to_owned()))?;
        let kind = text(object, "type")?;
        if kind.is_empty() || kind.contains('/') || kind.starts_with('.') {
            return Err(invalid(format!("`type` is `{kind}`, which is not a plugin's name")));
        }
        Ok(Self { kind: kind.to_owned(), object: object.clone() })
    }

    /// What the plugin reads: its object with the list's name and version, those capabilities that it declares, and `more`.
    pub(crate) fn given(
        &self,
        list: &NetworkList,
        capability_args: &Map<String, Value>,
        more: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Vec<u8> {
        let mut object = self.object.clone();
        // A program of shunt's would ask the service, which waits for it.
        object.retain(|key, _| !key.eq_ignore_ascii_case("viaAgent"));
        object.insert("name".to_owned(), list.name.as_str().into());
        object.insert("cniVersion".to_owned(), list.version.as_str().into());
        let declared = self.object.get("capabilities").and_then(Value::as_object);
        let declared = declared.into_iter().flatten().filter(|(_, is_declared)| **is_declared == true);
        let runtime: Map<String, Value> = declared
            .filter_map(|(name, _)| Some((name.clone(), capability_args.get(name)?.clone())))
            .collect();
        if !runtime.is_empty() {
            object.insert("runtimeConfig".to_owned(), runtime.into());
        }
        object.extend(more.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Value::Object(object).to_string().into_bytes()
    }
}

/// The newest of `cniVersion` and `cniVersions` that is spoken.
fn version(list: &Map<String, Value>) -> Result<Version, Failure> {
    let one = text(list, "cniVersion")?;
    let more = list.get("cniVersions").and_then(Value::as_array).into_iter().flatten();
    let spoken = more.filter_map(Value::as_str).filter_map(|text| text.parse().ok());
    let one = one.parse::<Version>();
    spoken
        .chain(one.as_ref().ok().copied())
        .max()
        .map_or_else(|| one.map_err(|error| Failure::new(codes::VERSION, error.to_string())), Ok)
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Result<&'a str, Failure> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(invalid(format!("`{key}` is not a text"))),
    }
}

/// A flag, which libcni also takes as a text.
fn is_set(list: &Map<String, Value>, key: &str) -> Result<bool, Failure> {
    match list.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(is_set)) => Ok(*is_set),
        Some(Value::String(text)) if ["true", "false"].contains(&text.as_str()) => Ok(text == "true"),
        Some(_) => Err(invalid(format!("`{key}` is neither true nor false"))),
    }
}

fn invalid(why: String) -> Failure {
    Failure::new(codes::INVALID_CONFIG, why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(list: &Value) -> Result<NetworkList, Failure> {
        NetworkList::read(list.to_string().as_bytes())
    }

    #[test]
    fn a_plugin_is_given_the_capabilities_that_it_declares() {
        let list = read(&json!({ "cniVersion": "1.0.0", "name": "net", "plugins": [
            { "type": "a", "capabilities": { "mac": true, "ips": false, "dns": true } }, { "type": "b" }
        ] }))
        .unwrap();
        let args = json!({ "mac": "02:00:00:00:00:01", "ips": ["10.0.0.9"], "aliases": [] });
        let args = args.as_object().unwrap();
        let of = |at: usize, more: Vec<(&'static str, Value)>| {
            serde_json::from_slice::<Value>(&list.plugins[at].given(&list, args, more)).unwrap()
        };
        assert_eq!(
            of(0, vec![("prevResult", json!({ "ips": [] }))]),
            json!({ "type": "a", "capabilities": { "mac": true, "ips": false, "dns": true }, "name": "net",
                "cniVersion": "1.0.0", "runtimeConfig": { "mac": "02:00:00:00:00:01" }, "prevResult": { "ips": [] } })
        );
        assert_eq!(of(1, Vec::new()), json!({ "type": "b", "name": "net", "cniVersion": "1.0.0" }));
    }

    #[test]
    fn the_newest_version_that_is_spoken_is_taken() {
        for (list, wanted) in [
            (json!({ "cniVersion": "0.4.0" }), Ok(Version::V0_4_0)),
            (json!({}), Ok(Version::V0_1_0)),
            (json!({ "cniVersions": ["0.4.0", "1.1.0", "9.0.0"] }), Ok(Version::V1_1_0)),
            (json!({ "cniVersion": "9.0.0", "cniVersions": ["1.0.0"] }), Ok(Version::V1_0_0)),
            (json!({ "cniVersion": "9.0.0" }), Err(codes::VERSION)),
        ] {
            let found = version(list.as_object().unwrap()).map_err(|failure| failure.code);
            assert_eq!(found, wanted, "{list}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_code() {
        let plugins = json!([{ "type": "shunt" }]);
        for (list, code) in [
            (json!({ "name": "net", "plugins": [] }), codes::INVALID_CONFIG),
            (json!({ "name": "net" }), codes::INVALID_CONFIG),
            (json!({ "name": "a/b", "plugins": plugins }), codes::INVALID_CONFIG),
            (json!({ "plugins": plugins }), codes::INVALID_CONFIG),
            (json!({ "name": 1, "plugins": plugins }), codes::INVALID_CONFIG),
            (json!({ "name": "net", "plugins": [{ "type": "../sh" }] }), codes::INVALID_CONFIG),
            (json!({ "name": "net", "plugins": [1] }), codes::INVALID_CONFIG),
            (json!({ "name": "net", "plugins": plugins, "disableGC": 1 }), codes::INVALID_CONFIG),
            (json!([]), codes::DECODING),
        ] {
            assert_eq!(read(&list).unwrap_err().code, code, "{list}");
        }
        assert_eq!(NetworkList::read(b"{").unwrap_err().code, codes::DECODING);
    }

    /// JSON of a list's shape, whose values are of any kind.
    fn any_list() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z./\\PC]{0,8}".prop_map(Value::from),
        ];
        let value = scalar.prop_recursive(3, 16, 4, |inner| {
            let key = prop_oneof![Just("type".to_owned()), Just("capabilities".to_owned()), "[a-z]{1,3}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..4)
                    .prop_map(|keys| Value::Object(keys.into_iter().collect())),
            ]
        });
        const KEYS: [&str; 6] = ["cniVersion", "cniVersions", "name", "plugins", "disableCheck", "disableGC"];
        prop::collection::btree_map(prop::sample::select(&KEYS[..]).prop_map(str::to_owned), value, 0..7)
            .prop_map(|keys| Value::Object(keys.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn no_list_panics_and_what_is_read_can_be_given(list in any_list(), plugin in "[a-z]{1,8}") {
            let mut list = list;
            for _ in 0..2 {
                if let Ok(read) = read(&list) {
                    for config in &read.plugins {
                        let given: Value = serde_json::from_slice(&config.given(&read, &Map::new(), [])).unwrap();
                        prop_assert_eq!(&given["name"], &json!(read.name));
                        prop_assert_eq!(&given["type"], &json!(config.kind));
                    }
                }
                // Once more with what a list cannot do without.
                list["name"] = "net".into();
                list["cniVersion"] = "1.0.0".into();
                list["plugins"] = json!([{ "type": plugin, "capabilities": list["plugins"] }]);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let refused = NetworkList::read(&bytes).unwrap_err();
            prop_assert!([codes::DECODING, codes::INVALID_CONFIG].contains(&refused.code), "{:?}", refused);
        }
    }
}
