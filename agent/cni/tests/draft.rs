//! The draft's messages and calls are the draft's: names, numbers and types as a compiler reads them from its own file, sorted.
#![allow(clippy::unwrap_used, reason = "a test")]

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

const DRAFT: &str = include_str!("draft.txt");

fn type_of(field: &FieldDescriptorProto) -> String {
    let repeated = if field.label() == Label::Repeated { "repeated " } else { "" };
    let name = match field.r#type() {
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::Int32 => "int32",
        Type::Uint32 => "uint32",
        Type::Bool => "bool",
        _ => field.type_name(),
    };
    format!("{repeated}{name}")
}

fn facts_of(message: &DescriptorProto, within: &str, facts: &mut Vec<String>) {
    let name = format!("{within}.{}", message.name());
    for field in &message.field {
        facts.push(format!("{name}.{} {} {}", field.name(), field.number(), type_of(field)));
    }
    for inner in &message.nested_type {
        facts_of(inner, &name, facts);
    }
}

fn facts(file: &FileDescriptorProto) -> Vec<String> {
    let package = format!(".{}", file.package());
    let mut facts = Vec::new();
    for service in &file.service {
        for method in &service.method {
            assert!(!method.client_streaming() && !method.server_streaming());
            let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
            facts.push(format!("{path} {} {}", method.input_type(), method.output_type()));
        }
    }
    for message in &file.message_type {
        facts_of(message, &package, &mut facts);
    }
    for kind in &file.enum_type {
        let values = kind.value.iter();
        facts.extend(
            values.map(|value| format!("{package}.{}.{} {}", kind.name(), value.name(), value.number())),
        );
    }
    facts.sort();
    facts
}

#[test]
fn names_numbers_and_types_are_the_draft_s() {
    let set = FileDescriptorSet::decode(shunt_cni::DESCRIPTORS).unwrap();
    let file = set.file.into_iter().find(|file| file.package() == "cni").unwrap();
    assert_eq!(facts(&file), DRAFT.lines().collect::<Vec<_>>());
}
