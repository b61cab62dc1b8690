//! The manual's reference of the configuration file, from the types that read it: their comments, bounds and defaults.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

use super::{ApiOptions, ClusterOptions, Config, KubernetesOptions, Options, VxlanOptions};
use crate::capacity::UplinkOptions;
use crate::documented::{assert_current, row};

const SECTIONS: [&str; 4] = ["uplinks", "kubernetes", "cluster", "api"];

/// The keys of a type, each with its schema, in alphabetical order.
fn keys<T: JsonSchema>() -> Vec<(String, Value)> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let properties = std::mem::take(schema["properties"].as_object_mut().unwrap());
    let mut keys: Vec<_> = properties.into_iter().collect();
    keys.sort_by(|(one, _), (other, _)| one.cmp(other));
    keys
}

/// The schema that says what a value looks like: of what may be left out, the one that is not null.
fn present(schema: &Value) -> &Value {
    let branches = schema["anyOf"].as_array().into_iter().flatten();
    branches.filter(|branch| branch["type"] != "null").map(present).next().unwrap_or(schema)
}

/// The words that a value may be, with what each means.
fn words(schema: &Value) -> Vec<(&str, &str)> {
    let words = present(schema)["oneOf"].as_array().into_iter().flatten();
    words.map(|word| (word["const"].as_str().unwrap(), word["description"].as_str().unwrap())).collect()
}

fn form(schema: &Value) -> String {
    if let Some(form) = schema["form"].as_str() {
        return form.to_owned();
    }
    let of_words = words(schema);
    if !of_words.is_empty() {
        return of_words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    let value = present(schema);
    let kinds = value["type"].as_array().cloned().unwrap_or_else(|| vec![value["type"].clone()]);
    match kinds[0].as_str().unwrap() {
        "integer" => match (value["minimum"].as_u64(), value["maximum"].as_u64()) {
            (Some(least), Some(most)) => format!("integer, {least} to {most}"),
            (Some(least), None) => format!("integer from {least} on"),
            _ => panic!("bounds: {schema}"),
        },
        "string" => match (value["minLength"].as_u64(), value["maxLength"].as_u64()) {
            (Some(least), Some(most)) => format!("text, {least} to {most} bytes"),
            _ => "text".to_owned(),
        },
        "array" => "list of texts".to_owned(),
        "object" => "section".to_owned(),
        other => other.to_owned(),
    }
}

/// What a key does: its comment, its words, and where more is said.
fn meaning(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_else(|| panic!("no comment: {schema}"));
    let mut text = text.replace('\n', " ");
    let meant: Vec<_> =
        words(schema).iter().map(|(word, meaning)| format!("`{word}`: {}", clause(meaning))).collect();
    if !meant.is_empty() {
        text = format!("{} {}.", text.trim_end_matches('.').to_owned() + ":", meant.join("; "));
    }
    schema["see"].as_str().map_or(text.clone(), |page| format!("{text} [More]({page})."))
}

/// A sentence as a part of one.
fn clause(sentence: &str) -> String {
    let sentence = sentence.replace('\n', " ");
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    let is_word = letters.clone().nth(1).is_none_or(|second| !second.is_uppercase());
    match letters.next() {
        Some(first) if is_word => first.to_lowercase().chain(letters).collect(),
        _ => sentence.to_owned(),
    }
}

fn default(key: &str, schema: &Value, defaults: &Value) -> String {
    if let Some(words) = schema["otherwise"].as_str() {
        return words.to_owned();
    }
    match &defaults[key] {
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => {
            items.iter().map(|item| format!("`{}`", item.as_str().unwrap())).collect::<Vec<_>>().join(", ")
        }
        Value::Number(mask) if key == "mark_mask" => format!("`{:#x}`", mask.as_u64().unwrap()),
        Value::Null => panic!("{key} has no default that can be written: say `otherwise`"),
        other => other.to_string(),
    }
}

/// The table of a section, without the sections in it.
fn table<T: JsonSchema>(section: Option<&str>, defaults: &impl Serialize) -> String {
    let defaults = serde_json::to_value(defaults).unwrap();
    let is_section =
        |(key, _): &(String, Value)| section.is_none() && SECTIONS.contains(&&**key) || key == "vxlan";
    let head = section.map_or("key".to_owned(), |section| format!("key of `[{section}]`"));
    let mut text = match section {
        Some(_) => row([&*head, "type", "default", "meaning"]) + "|---|---|---|---|\n",
        None => row([&*head, "flag", "type", "default", "meaning"]) + "|---|---|---|---|---|\n",
    };
    let (sections, keys): (Vec<_>, Vec<_>) = keys::<T>().into_iter().partition(is_section);
    for (key, schema) in keys {
        let (name, default) = (format!("`{key}`"), default(&key, &schema, &defaults));
        let flag = schema["flag"].as_str().map(|flag| format!("`{flag}`")).unwrap_or_default();
        let (form, meaning) = (form(&schema), meaning(&schema));
        text += &match section {
            Some(_) => row([&*name, &form, &default, &meaning]),
            None => row([&*name, &flag, &form, &default, &meaning]),
        };
    }
    for (key, schema) in sections {
        let name = match section {
            Some(section) => format!("`[{section}.{key}]`"),
            None if key == "uplinks" => "`[uplinks.NAME]`".to_owned(),
            None => format!("`[{key}]`"),
        };
        let flag = schema["flag"].as_str().map(|flag| format!("`{flag}`")).unwrap_or_default();
        text += &match section {
            Some(_) => row([&*name, "section", "", &meaning(&schema)]),
            None => row([&*name, &flag, "section", "", &meaning(&schema)]),
        };
    }
    text
}

fn written() -> String {
    let root = Config::from(Options::default());
    [
        table::<Options>(None, &root),
        table::<UplinkOptions>(Some("uplinks.NAME"), &UplinkOptions::default()),
        table::<KubernetesOptions>(Some("kubernetes"), &KubernetesOptions::default()),
        table::<ClusterOptions>(Some("cluster"), &ClusterOptions::default()),
        table::<VxlanOptions>(Some("cluster.vxlan"), &VxlanOptions::default()),
        table::<ApiOptions>(Some("api"), &ApiOptions::default()),
    ]
    .join("\n")
}

#[test]
fn the_manuals_reference_of_the_file_is_what_the_types_say() {
    assert_current("keys", &written());
}

/// A value within a key's form.
fn example(key: &str, schema: &Value) -> Value {
    match schema["form"].as_str() {
        Some("quantity") => return json!("10G"),
        Some("`ADDR:PORT`") => return json!("127.0.0.1:9477"),
        Some(form) if form.starts_with("duration") => return json!("250ms"),
        Some("list of prefixes") => return json!(["10.0.0.0/24"]),
        Some("list of paths") => return json!(["/a"]),
        Some("path") => return json!("/a"),
        Some(form) if form.starts_with("`auto`") => return json!("auto"),
        _ => {}
    }
    if let Some((word, _)) = words(schema).first() {
        return json!(word);
    }
    let value = present(schema);
    let kinds = value["type"].as_array().cloned().unwrap_or_else(|| vec![value["type"].clone()]);
    match kinds[0].as_str().unwrap() {
        "integer" if key == "mark_mask" => json!(0x70),
        "integer" => json!(value["maximum"].as_u64().unwrap_or(1)),
        "number" => json!(1.5),
        "boolean" => json!(true),
        "array" => json!(["a"]),
        _ => json!("a"),
    }
}

#[test]
fn every_key_of_the_reference_is_read_in_its_form() {
    let object = |keys: Vec<(String, Value)>| {
        let read = keys.into_iter().filter(|(key, _)| key != "vxlan" && !SECTIONS.contains(&&**key));
        Value::Object(read.map(|(key, schema)| (key.clone(), example(&key, &schema))).collect())
    };
    let mut whole = object(keys::<Options>());
    whole["uplinks"] = json!({ "eth1": object(keys::<UplinkOptions>()) });
    whole["kubernetes"] = object(keys::<KubernetesOptions>());
    whole["cluster"] = object(keys::<ClusterOptions>());
    whole["api"] = object(keys::<ApiOptions>());
    whole["cluster"]["vxlan"] = object(keys::<VxlanOptions>());
    let text = toml::to_string(&whole).unwrap();
    let config =
        Config::from(toml::from_str::<Options>(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    assert_eq!(config.uplinks["eth1"].networks, ["a"]);
}

#[test]
fn no_key_holds_a_secret_for_all_are_shown() {
    let all =
        [keys::<Options>(), keys::<UplinkOptions>(), keys::<KubernetesOptions>(), keys::<ClusterOptions>()];
    let all =
        all.into_iter().chain([keys::<VxlanOptions>(), keys::<ApiOptions>()]).flatten().map(|(key, _)| key);
    let secrets: Vec<_> = all
        .filter(|key| {
            ["token", "secret", "password", "credential", "private"].iter().any(|word| key.contains(word))
        })
        .collect();
    assert_eq!(secrets, Vec::<String>::new(), "`config show` must not show it");
}
