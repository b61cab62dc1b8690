//! What reflection tells: names as buf's standard rules want them, and a comment at everything.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;

use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

/// Field numbers in `FileDescriptorProto`, `DescriptorProto` and `ServiceDescriptorProto`.
const MESSAGES: i32 = 4;
const SERVICES: i32 = 6;
const FIELDS: i32 = 2;
const METHODS: i32 = 2;

fn file() -> FileDescriptorProto {
    let set = FileDescriptorSet::decode(shunt_cni::DESCRIPTORS).unwrap();
    set.file.into_iter().find(|file| file.package() == "shunt.cni.v1").unwrap()
}

#[test]
fn every_verb_has_messages_of_its_own() {
    let file = file();
    let [service] = file.service.as_slice() else { panic!("{} services", file.service.len()) };
    assert_eq!(service.name(), "CniService");
    let verbs: Vec<&str> = service.method.iter().map(|method| method.name()).collect();
    assert_eq!(
        verbs,
        [
            "Add",
            "Delete",
            "Check",
            "GarbageCollect",
            "Status",
            "Version",
            "Capacity",
            "Validate",
            "Init",
            "Deinit",
            "Finalize",
            "RegisterNetwork",
            "ListNetworks",
            "UnregisterNetwork",
            "ListAttachments",
            "Watch",
            "Invoke"
        ]
    );
    for method in &service.method {
        assert_eq!(method.input_type(), format!(".shunt.cni.v1.{}Request", method.name()));
        assert_eq!(method.output_type(), format!(".shunt.cni.v1.{}Response", method.name()));
    }
}

#[test]
fn services_methods_messages_and_fields_have_comments() {
    let file = file();
    let commented: BTreeSet<&[i32]> = file
        .source_code_info
        .as_ref()
        .unwrap()
        .location
        .iter()
        .filter(|place| !place.leading_comments().trim().is_empty())
        .map(|place| place.path.as_slice())
        .collect();
    let mut places = Vec::new();
    for (number, service) in (0..).zip(&file.service) {
        places.push((service.name().to_owned(), vec![SERVICES, number]));
        for (of, method) in (0..).zip(&service.method) {
            places.push((method.name().to_owned(), vec![SERVICES, number, METHODS, of]));
        }
    }
    for (number, message) in (0..).zip(&file.message_type) {
        places.push((message.name().to_owned(), vec![MESSAGES, number]));
        for (of, field) in (0..).zip(&message.field) {
            let name = format!("{}.{}", message.name(), field.name());
            places.push((name, vec![MESSAGES, number, FIELDS, of]));
        }
    }
    assert!(places.len() > 60, "{} places", places.len());
    for (name, path) in places {
        assert!(commented.contains(path.as_slice()), "{name} has no comment");
    }
}
