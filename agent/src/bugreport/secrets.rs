//! Takes secrets out of text, whatever part it is of: values that are named as secrets, keys and certificates, and what looks like a token.

/// What stands in a secret's place.
const REMOVED: &str = "[removed]";

/// What a key's name has in it, in lower case and without `-` and `_`, whose value is a secret.
const SECRET: [&str; 10] = [
    "token",
    "password",
    "passwd",
    "secret",
    "credential",
    "authorization",
    "apikey",
    "privatekey",
    "keydata",
    "authoritydata",
];

/// A word of so many letters of both cases and digits is taken for a token.
const LONG: usize = 40;

/// The text without secrets.
pub(super) fn scrub(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("-----BEGIN ") {
        clean.push_str(&rest[..at]);
        clean.push_str(REMOVED);
        // An end that is cut off takes all of the rest with it.
        let end = rest[at..].find("-----END ").map(|end| at + end + "-----END ".len());
        rest = end.map_or("", |end| &rest[end..]);
        rest = rest.find("-----").map_or("", |end| &rest[end + "-----".len()..]);
    }
    clean.push_str(rest);
    let lines: Vec<_> = clean.split('\n').map(|line| words(&without_named(line))).collect();
    lines.join("\n")
}

/// A line up to the first value that is named as a secret.
fn without_named(line: &str) -> String {
    for (at, _) in line.match_indices(['=', ':']) {
        let name = line[..at].trim_end_matches([' ', '\t', '"', '\'', '\\']);
        let name =
            name.rsplit(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_'));
        let name = name.clone().next().unwrap_or_default().replace(['-', '_'], "").to_lowercase();
        let has_value = !line[at + 1..].trim().is_empty();
        if has_value && SECRET.iter().any(|secret| name.contains(secret)) {
            return format!("{} {REMOVED}", &line[..=at]);
        }
    }
    line.to_owned()
}

/// A line whose words are no tokens, and its addresses without a user and a password.
fn words(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut word = String::new();
    for letter in line.chars().chain(['\n']) {
        if letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '+' | '.' | '=') {
            word.push(letter);
            continue;
        }
        let follows_bearer = clean.trim_end().to_lowercase().ends_with("bearer");
        clean.push_str(if is_token(&word) || (follows_bearer && !word.is_empty()) { REMOVED } else { &word });
        word.clear();
        if letter == '@' {
            hide_user(&mut clean);
        }
        if letter != '\n' {
            clean.push(letter);
        }
    }
    clean
}

/// Takes `user:password` out behind `://`, once the `@` after it has come.
fn hide_user(clean: &mut String) {
    if let Some(at) = clean.rfind("://").map(|at| at + 3)
        && !clean[at..].contains(['/', ' ', '"'])
    {
        clean.truncate(at);
        clean.push_str(REMOVED);
    }
}

/// A JSON web token, or a long word as encoded keys are. Names of programs and ids of containers have no letters of both cases.
fn is_token(word: &str) -> bool {
    let is_web_token = word.starts_with("eyJ") && word.len() > 16;
    let has = |kind: fn(&char) -> bool| word.chars().any(|letter| kind(&letter));
    let is_mixed =
        has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase) && has(char::is_ascii_digit);
    is_web_token || word.len() >= LONG && is_mixed && !word.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_secrets_of_any_kind() {
        for text in [
            "token = \"hunter2\"",
            "client-key-data: hunter2",
            r#"{"level":"INFO","api_key":"hunter2","x":1}"#,
            "Authorization: Bearer hunter2",
            "sent with bearer hunter2 to it",
            "https://user:hunter2@api.example:6443/x failed",
            "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\nafter",
            "-----BEGIN CERTIFICATE-----\\nhunter2",
            "it was eyJhbGciOiJSUzI1NiIsImtpZCI6ImhunTer2hunter2 that",
            "got MIIEpAIBAAKCAQEA7hunter2yT0Zb4W9xQeR5uVn3Lk8",
            "password: hunter2 and more",
        ] {
            let clean = scrub(text);
            assert!(!clean.contains("hunter2") && clean.contains(REMOVED), "{text} is {clean}");
        }
        assert!(scrub("-----BEGIN X-----\na\n-----END X-----\nafter").ends_with("\nafter"));
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "attach key=net/0af3b4c5d6e7f80912a3b4c5d6e7f80912a3b4c5d6e7f80912a3b4c5d6e7f809/eth0 result=\"ok\"",
            "kubeconfig = \"/etc/shunt/agent.kubeconfig\"",
            "socket=/run/shunt/agent.sock: 10.77.0.2:80 -> fd77::2",
            "CONFIG_BRIDGE_NETFILTER=y",
            "the API server has refused the token:",
            "2026-01-02T03:04:05Z  INFO serving",
        ] {
            assert_eq!(scrub(text), text);
        }
    }
}
