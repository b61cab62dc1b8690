//! `resolvConf`: the DNS part of a result, read from a file in resolv.conf's format (resolv.conf(5)).

use std::{
    io::{self, ErrorKind, Read},
    path::Path,
};

use crate::result::Dns;

/// No real file comes near; one named by mistake must not fill the memory.
const MAX_SIZE: u64 = 64 * 1024;

/// Reads the file.
pub(super) fn read(path: &Path) -> io::Result<Dns> {
    let mut content = Vec::new();
    shunt_regular_file::open(path)?.take(MAX_SIZE + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_SIZE {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(parse(&String::from_utf8_lossy(&content)))
}

/// `nameserver`, `search` and `options` add up, the last `domain` counts, anything else is skipped.
fn parse(content: &str) -> Dns {
    let mut dns = Dns::default();
    for line in content.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(keyword), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        match keyword.as_str() {
            "nameserver" => dns.nameservers.push(value),
            "domain" => dns.domain = value,
            "search" => dns.search.extend([value].into_iter().chain(words)),
            "options" => dns.options.extend([value].into_iter().chain(words)),
            _ => {}
        }
    }
    dns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_add_up_and_comments_and_unknown_ones_are_skipped() {
        let dns = parse(
            "# comment\n; another\n\nnameserver 10.0.0.53\r\n  nameserver\tfd00::53  # the rest is ignored\n\
             domain first.example\ndomain last.example\nsearch a.example b.example\nsearch c.example\n\
             options ndots:2 rotate\nsortlist 10.0.0.0\nnameserver\n",
        );
        assert_eq!(dns.nameservers, ["10.0.0.53", "fd00::53"]);
        assert_eq!(dns.domain, "last.example");
        assert_eq!(dns.search, ["a.example", "b.example", "c.example"]);
        assert_eq!(dns.options, ["ndots:2", "rotate"]);
    }

    #[test]
    fn a_file_that_is_too_long_and_what_is_no_file_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let long = dir.path().join("resolv.conf");
        std::fs::write(&long, vec![b'#'; 65 * 1024]).unwrap();
        assert_eq!(read(&long).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
