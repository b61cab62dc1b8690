//! MAC addresses as people write them.

use shunt_dataplane::wire::address::Mac;

/// Reads `aa:bb:cc:dd:ee:ff`; none if it is anything else.
pub(crate) fn parse(text: &str) -> Option<Mac> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part =
            parts.next().filter(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(Mac::new(bytes))
}

/// Writes `aa:bb:cc:dd:ee:ff`.
pub(crate) fn format(mac: Mac) -> String {
    let [a, b, c, d, e, f] = mac.octets();
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_being_written_and_read() {
        let mac = Mac::new([0x02, 0, 0xab, 0xcd, 0xef, 0x10]);
        assert_eq!(format(mac), "02:00:ab:cd:ef:10");
        assert_eq!(parse(&format(mac)), Some(mac));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "02:00:ab:cd:ef",
            "02:00:ab:cd:ef:10:11",
            "2:0:ab:cd:ef:10",
            "+2:00:ab:cd:ef:10",
            "02-00-ab-cd-ef-10",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
