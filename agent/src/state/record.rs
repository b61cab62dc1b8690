//! The content of an attachment's file.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use shunt_agent_api::{AttachmentKey, BridgePort, frame::MAX_MESSAGE};
use shunt_regular_file::read_own;

/// The version of the files that this agent writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// No record is longer than the request that it was made of.
pub(super) const LONGEST: u64 = MAX_MESSAGE as u64;

/// One attachment as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The kernel's boot id. After a reboot nothing of the attachment is left in the kernel.
    pub boot: String,
    /// What was asked for.
    pub port: BridgePort,
}

/// Why a file is not a valid record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Nothing in it.
    #[error("it is empty")]
    Empty,
    /// Written by a newer agent.
    #[error("it has format {0}, this agent reads up to {FORMAT}")]
    Future(u64),
    /// The content is torn or no state file.
    #[error("it is not a state file: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The file system gives no content.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The record can be read, and its port cannot be served.
    #[error("its port cannot be served: {0}")]
    Unplaced(String),
    /// The file's name belongs to another key: a copy must not claim the attachment twice.
    #[error("its name is not that of its attachment {0}")]
    Misnamed(AttachmentKey),
}

impl RecordError {
    /// Whether the file may be whole, and readable to a newer agent or once the disk is well: it stays where it is.
    pub(super) const fn may_pass(&self) -> bool {
        matches!(self, Self::Future(_) | Self::Io(_))
    }
}

impl Record {
    /// Reads a file. What is no regular file is refused, and not waited for.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        Self::read(&read_own(path, LONGEST)?)
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// [`RecordError`]; never a panic, whatever the bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(RecordError::Empty);
        }
        let value: serde_json::Value = serde_json::from_slice(bytes)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format > u64::from(FORMAT) => Err(RecordError::Future(format)),
            _ => Ok(serde_json::from_value(value)?),
        }
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// None is known: every field can be serialized.
    pub fn write(&self) -> Result<Vec<u8>, RecordError> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shunt_agent_api::{Bandwidth, Interface, Restrictions, Service};

    use super::*;

    fn record() -> Record {
        Record {
            format: FORMAT,
            boot: "b".into(),
            port: BridgePort {
                key: AttachmentKey { network: "n".into(), container: "c".into(), ifname: "eth0".into() },
                bridge: Interface { name: "br".into(), index: 2 },
                host: Interface { name: "veth".into(), index: 3 },
                mac: "02:00:00:00:00:01".into(),
                ips: vec!["10.0.0.2".parse().unwrap()],
                mtu: 1500,
                netns: None,
                peer_up: false,
                masquerade: Vec::new(),
                unmasqueraded: Vec::new(),
                restrictions: Restrictions::default(),
                mappings: Vec::new(),
                bandwidth: Bandwidth::default(),
                service: Service::default(),
                lease_dir: None,
                vlan: None,
                pod: None,
            },
        }
    }

    #[test]
    fn a_file_of_the_release_before_is_read_and_written_as_it_was() {
        let earlier = include_bytes!("../../api/tests/earlier/state.json");
        let record = Record::read(earlier).unwrap();
        assert_eq!(String::from_utf8(record.write().unwrap()).unwrap().as_bytes(), earlier);
    }

    #[test]
    fn a_record_of_an_agent_that_knew_nothing_of_leases_is_read() {
        let mut port = record().port;
        port.lease_dir = Some("/var/lib/cni/networks".into());
        let bytes = Record { port, ..record() }.write().unwrap();
        let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert!(value["port"].as_object_mut().unwrap().remove("lease_dir").is_some());
        assert_eq!(Record::read(value.to_string().as_bytes()).unwrap(), record());
    }

    #[test]
    fn unmasqueraded_destinations_are_a_field_that_older_agents_pass_over() {
        let mut port = record().port;
        port.unmasqueraded = vec!["10.244.0.0/16".into()];
        let bytes = Record { port, ..record() }.write().unwrap();
        let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(value["format"], FORMAT, "they read it");
        assert!(value["port"].as_object_mut().unwrap().remove("unmasqueraded").is_some());
        assert_eq!(Record::read(value.to_string().as_bytes()).unwrap(), record());
        // A field that this agent does not know is no fault, either.
        value["port"]["later"] = serde_json::json!(["x"]);
        assert_eq!(Record::read(value.to_string().as_bytes()).unwrap(), record());
    }

    #[test]
    fn a_record_torn_anywhere_is_refused() {
        let whole = record().write().unwrap();
        assert_eq!(Record::read(&whole).unwrap(), record());
        for length in 0..whole.len() - 1 {
            assert!(Record::read(&whole[..length]).is_err(), "{length}");
        }
        assert!(matches!(Record::read(&vec![0; whole.len()]), Err(RecordError::Empty)));
    }

    #[test]
    fn a_newer_agents_record_is_told_from_a_torn_one() {
        assert!(matches!(Record::read(br#"{"format": 2, "shape": "new"}"#), Err(RecordError::Future(2))));
    }

    proptest! {
        #[test]
        fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = Record::read(&bytes).map(|record| assert_eq!(record.format, FORMAT));
        }
    }
}
