//! Whether grace periods are expedited: what the configuration and the machine say.

use std::fs;
use std::path::Path;

use super::switch::Switch;
use crate::config::GracePeriodMode;

/// What the agent does, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) expedites: bool,
    pub(super) reason: String,
}

impl Policy {
    /// Decides for the machine whose sysfs is mounted at `sys`.
    ///
    /// To expedite a grace period the kernel interrupts every processor. `auto` leaves a machine alone whose processors are kept
    /// free of that (`isolcpus=`, `nohz_full=`), or whose operator has ruled it out (`rcu_normal`).
    pub(super) fn decide(mode: GracePeriodMode, sys: &Path) -> Self {
        let normal = |reason: String| Self { expedites: false, reason };
        if let Err(error) = Switch::of(sys).probe() {
            return normal(format!("{} cannot be written: {error}", Switch::of(sys).path().display()));
        }
        match mode {
            GracePeriodMode::Normal => normal("configured".to_owned()),
            GracePeriodMode::Expedite => Self { expedites: true, reason: "configured".to_owned() },
            GracePeriodMode::Auto => match objection(sys) {
                Some(reason) => normal(reason),
                None => Self { expedites: true, reason: "no processor is isolated".to_owned() },
            },
        }
    }
}

/// Why `auto` means `normal`.
fn objection(sys: &Path) -> Option<String> {
    let read = |file| fs::read_to_string(sys.join(file)).unwrap_or_default().trim().to_owned();
    // Without nohz_full the kernel writes "(null)", or has no such file.
    let processors =
        |file| Some(read(file)).filter(|list| list.starts_with(|first: char| first.is_ascii_digit()));
    if let Some(list) = processors("devices/system/cpu/isolated") {
        return Some(format!("processors {list} are isolated"));
    }
    if let Some(list) = processors("devices/system/cpu/nohz_full") {
        return Some(format!("processors {list} are in nohz_full"));
    }
    let is_normal = !["", "0"].contains(&read("kernel/rcu_normal").as_str());
    is_normal.then(|| "/sys/kernel/rcu_normal is set".to_owned())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn machine(files: &[(&str, &str)]) -> TempDir {
        let sys = tempfile::tempdir().unwrap();
        let usual = [
            ("kernel/rcu_expedited", "0\n"),
            ("kernel/rcu_normal", "0\n"),
            ("devices/system/cpu/isolated", "\n"),
            ("devices/system/cpu/nohz_full", "(null)\n"),
        ];
        for (file, content) in usual.iter().chain(files) {
            let path = sys.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        sys
    }

    fn decide(mode: GracePeriodMode, files: &[(&str, &str)]) -> (bool, String) {
        let policy = Policy::decide(mode, machine(files).path());
        (policy.expedites, policy.reason)
    }

    #[test]
    fn auto_expedites_where_no_processor_is_isolated() {
        assert!(decide(GracePeriodMode::Auto, &[]).0);
    }

    #[test]
    fn auto_is_normal_where_processors_are_isolated_or_the_operator_rules_it_out() {
        for (file, content, reason) in [
            ("devices/system/cpu/isolated", "2-3\n", "processors 2-3 are isolated"),
            ("devices/system/cpu/nohz_full", "1,3\n", "processors 1,3 are in nohz_full"),
            ("kernel/rcu_normal", "1\n", "/sys/kernel/rcu_normal is set"),
        ] {
            let files = [(file, content)];
            assert_eq!(decide(GracePeriodMode::Auto, &files), (false, reason.to_owned()));
            assert!(decide(GracePeriodMode::Expedite, &files).0, "{file}: configured");
        }
    }

    #[test]
    fn normal_never_expedites() {
        assert_eq!(decide(GracePeriodMode::Normal, &[]), (false, "configured".to_owned()));
    }

    #[test]
    fn a_machine_without_the_switch_is_normal() {
        let sys = machine(&[]);
        fs::remove_file(sys.path().join("kernel/rcu_expedited")).unwrap();
        let policy = Policy::decide(GracePeriodMode::Expedite, sys.path());
        assert!(!policy.expedites && policy.reason.contains("rcu_expedited cannot be written"), "{policy:?}");
    }
}
