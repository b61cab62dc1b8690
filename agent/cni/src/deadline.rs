//! How long a call may take: `grpc-timeout`, within bounds.

use std::time::Duration;

use http::HeaderMap;

/// Without a deadline of the client's, and at most.
pub(crate) const LONGEST: Duration = Duration::from_secs(300);

/// The time of a call that has an end of its own.
pub(crate) fn of(headers: &HeaderMap) -> Duration {
    given(headers).map_or(LONGEST, |given| given.min(LONGEST))
}

/// The time that a client gives (gRPC over HTTP/2, "Timeout": up to eight digits and a unit).
pub(crate) fn given(headers: &HeaderMap) -> Option<Duration> {
    read(headers.get("grpc-timeout")?.to_str().ok()?)
}

fn read(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_number)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_digits_and_a_unit() {
        for (text, wanted) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("15S", Some(Duration::from_secs(15))),
            ("250m", Some(Duration::from_millis(250))),
            ("9u", Some(Duration::from_micros(9))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("100000000n", None),
            ("", None),
            ("S", None),
            ("-1S", None),
            ("+1S", None),
            ("1x", None),
            ("1é", None),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        let mut headers = HeaderMap::new();
        assert_eq!(of(&headers), LONGEST);
        headers.insert("grpc-timeout", "99999999H".parse().unwrap());
        assert_eq!(of(&headers), LONGEST);
    }
}
