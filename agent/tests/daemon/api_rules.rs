//! What an API server checks of a `ResourceSlice`, and what it makes of it.

use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::Value;
use shunt_agent::capacity::Quantity;

/// Fields that hold a quantity.
const QUANTITIES: [&str; 5] = ["value", "default", "min", "max", "step"];

/// The slice, if the schema has every field of it and the API server's validation lets it pass
/// (pkg/apis/resource/validation/validation.go).
pub(crate) fn check_slice(body: &[u8]) -> Result<Value, String> {
    let given: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let typed: ResourceSlice = serde_json::from_value(given.clone()).map_err(|error| error.to_string())?;
    let read = serde_json::to_value(&typed).unwrap();
    if read != given {
        return Err(format!("strict decoding error: {given} is read as {read}"));
    }
    let spec = &typed.spec;
    let devices = spec.devices.as_deref().unwrap_or_default();
    let checks = [
        (spec.driver.len() <= 63, "the driver's name is too long"),
        (spec.node_name.as_deref() == Some(&spec.pool.name), "a pool of another node's"),
        (spec.pool.resource_slice_count == 1 && spec.pool.generation > 0, "the pool is not whole"),
        (devices.len() <= 128, "too many devices"),
        (devices.iter().all(|device| is_label(&device.name)), "a device's name is no DNS label"),
    ];
    if let Some((_, why)) = checks.iter().find(|(holds, _)| !holds) {
        return Err((*why).to_owned());
    }
    for device in devices {
        for (name, capacity) in device.capacity.iter().flatten() {
            let number = |text: &str| text.parse::<Quantity>().map(|quantity| quantity.0).unwrap();
            let Some(policy) = &capacity.request_policy else { continue };
            if device.allow_multiple_allocations != Some(true) {
                return Err(format!("{name}: a request policy needs allowMultipleAllocations"));
            }
            let (range, default) = (policy.valid_range.as_ref().unwrap(), policy.default.as_ref().unwrap());
            let (min, default) = (number(&range.min.0), number(&default.0));
            let (max, step) =
                (number(&range.max.as_ref().unwrap().0), number(&range.step.as_ref().unwrap().0));
            let whole = |value: u64| (value - min).is_multiple_of(step);
            if !(min <= default
                && default <= max
                && max <= number(&capacity.value.0)
                && whole(max)
                && whole(default))
            {
                return Err(format!("{name}: the request policy does not fit"));
            }
        }
    }
    Ok(given)
}

fn is_label(name: &str) -> bool {
    let inner = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    inner && !name.is_empty() && name.len() <= 63 && !name.starts_with('-') && !name.ends_with('-')
}

/// Quantities as the server keeps them: binary where that is whole (`2G` is `1953125Ki`), else decimal.
pub(crate) fn canonical(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if !field.is_string() || QUANTITIES.contains(&key.as_str()) {
                    canonical(field);
                }
            }
        }
        Value::Array(members) => members.iter_mut().for_each(canonical),
        Value::String(text) => {
            let Ok(quantity) = text.parse::<Quantity>() else { return };
            *text = match quantity.0 {
                0 => "0".to_owned(),
                bits if bits.is_multiple_of(1024) => format!("{}Ki", bits / 1024),
                _ => quantity.to_string(),
            };
        }
        _ => {}
    }
}

/// Without what the feature gate of consumable capacity guards.
pub(crate) fn without_gated_fields(slice: &mut Value) {
    for device in slice["spec"]["devices"].as_array_mut().unwrap() {
        device.as_object_mut().unwrap().remove("allowMultipleAllocations");
        for (_, capacity) in device["capacity"].as_object_mut().unwrap() {
            capacity.as_object_mut().unwrap().remove("requestPolicy");
        }
    }
}
