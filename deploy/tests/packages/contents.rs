//! What is in the packages, read as their formats say.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use rpm::{FileFlags, FileType};
use shunt_agent::config::{ConfigFile, Options};
use shunt_deploy::{CONFIGURATION, PLUGIN};

use crate::made::make;

/// Mode, owner and group of the files and directories of a tar file that is compressed.
fn entries(archive: impl Read) -> BTreeMap<String, (u32, u64, u64, Vec<u8>)> {
    let mut entries = BTreeMap::new();
    for entry in tar::Archive::new(GzDecoder::new(archive)).entries().unwrap() {
        let mut entry = entry.unwrap();
        let header = entry.header().clone();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        entries.insert(path, (header.mode().unwrap(), header.uid().unwrap(), header.gid().unwrap(), bytes));
    }
    entries
}

/// The members of a package of Debian's.
fn members(deb: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = ar::Archive::new(File::open(deb).unwrap());
    let mut members = Vec::new();
    while let Some(member) = archive.next_entry() {
        let mut member = member.unwrap();
        let name = String::from_utf8(member.header().identifier().to_vec()).unwrap();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        members.push((name, bytes));
    }
    members
}

#[test]
fn the_same_programs_give_the_same_packages() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let made = directories.each_ref().map(|directory| make(directory.path(), "1.2.3"));
    let [one, two] = made.map(|made| [made.deb, made.rpm, made.tarball]);
    for (one, two) in one.iter().zip(&two) {
        assert_eq!(one.file_name(), two.file_name());
        assert!(fs::read(one).unwrap() == fs::read(two).unwrap(), "{} differs", one.display());
    }
    let names = one.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    assert!(names[0].starts_with("shunt_1.2.3_") && names[0].ends_with(".deb"), "{names:?}");
    assert!(names[1].starts_with("shunt-1.2.3-1.") && names[1].ends_with(".rpm"), "{names:?}");
    assert!(names[2].starts_with("shunt-1.2.3-linux-") && names[2].ends_with(".tar.gz"), "{names:?}");
}

#[test]
fn every_package_has_the_same_files_of_roots_with_the_same_modes() {
    let directory = tempfile::tempdir().unwrap();
    let made = make(directory.path(), "1.2.3");
    let members = members(&made.deb);
    let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["debian-binary", "control.tar.gz", "data.tar.gz"], "deb(5)");
    assert_eq!(members[0].1, b"2.0\n");
    let deb = entries(members[2].1.as_slice());
    let tarball = entries(File::open(&made.tarball).unwrap());
    for (path, (mode, uid, gid, _)) in deb.iter().chain(&tarball) {
        let wanted = if path.ends_with('/')
            || path.ends_with("/shunt-agent") && path.contains("sbin")
            || path == PLUGIN
        {
            0o755
        } else {
            0o644
        };
        assert_eq!((*mode, *uid, *gid), (wanted, 0, 0), "{path}");
    }
    // Of zsh and the configuration each has its own place.
    let place = |path: &str| {
        let path = path.replace("/zsh/vendor-completions/", "/zsh/site-functions/");
        path.replace("usr/share/doc/shunt/agent.toml", CONFIGURATION)
    };
    let files = |entries: &BTreeMap<String, (u32, u64, u64, Vec<u8>)>| -> BTreeMap<String, u32> {
        let files = entries.iter().filter(|(path, _)| !path.ends_with('/'));
        files.map(|(path, (mode, ..))| (place(path), *mode)).collect()
    };
    let rpm = rpm::Package::open(&made.rpm).unwrap();
    let rpm = rpm.metadata.get_file_entries().unwrap();
    assert!(rpm.iter().all(|entry| entry.user() == "root" && entry.group() == "root"));
    let regular = rpm.iter().filter(|entry| entry.mode().file_type() == FileType::Regular);
    let of_rpm: BTreeMap<String, u32> = regular
        .map(|entry| {
            let path = entry.path();
            let path = path.to_str().unwrap().trim_start_matches('/');
            (path.to_owned(), u32::from(entry.mode().permissions()))
        })
        .collect();
    assert_eq!(files(&deb), files(&tarball));
    assert_eq!(files(&deb), of_rpm);
    assert!(files(&deb).len() > 30, "programs, unit, pages, completions");
    assert!(!tarball.keys().any(|path| path.starts_with("etc/")), "an operator's file is not written over");
}

#[test]
fn a_package_manager_is_told_which_file_is_the_operators() {
    let directory = tempfile::tempdir().unwrap();
    let made = make(directory.path(), "1.2.3");
    let members = members(&made.deb);
    let about = entries(members[1].1.as_slice());
    assert_eq!(about["conffiles"].3, format!("/{CONFIGURATION}\n").into_bytes());
    let rpm = rpm::Package::open(&made.rpm).unwrap();
    let entries = rpm.metadata.get_file_entries().unwrap();
    let operators: Vec<_> =
        entries.iter().filter(|entry| entry.flags().contains(FileFlags::CONFIG)).collect();
    assert_eq!(operators.len(), 1);
    assert!(operators[0].flags().contains(FileFlags::NOREPLACE));
}

#[test]
fn the_configuration_that_is_brought_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let members = members(&make(directory.path(), "1.2.3").deb);
    let path = directory.path().join("agent.toml");
    let text = entries(members[2].1.as_slice()).remove(CONFIGURATION).unwrap().3;
    fs::write(&path, &text).unwrap();
    let brought = ConfigFile::open(&path).unwrap().options().unwrap();
    assert_eq!(format!("{brought:?}"), format!("{:?}", Options::default()));
    // Nor is what it shows wrong.
    let shown = String::from_utf8(text).unwrap().replace("\n# [", "\n[");
    let is_setting = |line: &&str| line.starts_with("# ") && line.contains(" = ");
    let shown: String = shown
        .lines()
        .map(|line| if is_setting(&line) { &line[2..] } else { line })
        .map(|line| line.to_owned() + "\n")
        .collect();
    fs::write(&path, &shown).unwrap();
    let faults = ConfigFile::open(&path).unwrap().faults();
    assert!(faults.is_empty() && shown.contains("\negress"), "{faults:?}\n{shown}");
}

#[test]
fn the_unit_starts_the_agent_of_the_package() {
    let directory = tempfile::tempdir().unwrap();
    let files = entries(members(&make(directory.path(), "1.2.3").deb)[2].1.as_slice());
    let unit = String::from_utf8(files["usr/lib/systemd/system/shunt-agent.service"].3.clone()).unwrap();
    let started = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/")).unwrap();
    assert!(files.contains_key(started.split(' ').next().unwrap()), "{started}");
}

#[test]
fn the_agent_serves_before_any_runtime_that_is_served_starts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/dist/shunt-agent.service");
    let unit = fs::read_to_string(path).unwrap();
    let before: Vec<_> = unit
        .lines()
        .filter_map(|line| line.strip_prefix("Before="))
        .flat_map(|units| units.split(' '))
        .collect();
    let runtimes = "kubelet k3s k3s-agent rke2-server rke2-agent containerd crio docker nomad podman";
    for runtime in runtimes.split(' ') {
        assert!(before.contains(&&*format!("{runtime}.service")), "{runtime}: {before:?}");
    }
}

#[test]
fn the_scripts_are_what_a_shell_reads() {
    for script in ["deb/postinst", "deb/prerm", "deb/postrm", "rpm/post", "rpm/preun", "rpm/postun"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("package").join(script);
        let status = Command::new("sh").arg("-n").arg(&path).status().unwrap();
        assert!(status.success(), "{script}");
    }
}
