//! The processes of owners without a lock file, as their host shows them.
//!
//! A process id proves little: another host may have the same name, containers count their processes apart, and ids are used again. So a
//! mark also identifies where a process runs, by the boot of the kernel and the namespace of process ids, and when it was started. It
//! decides what users are shown, but no lease: copies of a suspended virtual machine have equal marks.

use std::fs;
use std::io::ErrorKind;

use md5::{Digest, Md5};

/// Returns the mark of this process: `place-start`. `None` where the system does not show processes, as outside Linux.
pub(super) fn own_mark() -> Option<String> {
    let pid = std::process::id().to_string();
    let Observed::Running { start } = observe(&pid) else {
        return None;
    };
    Some(format!("{}-{start}", place()?))
}

/// Returns whether the process with this id and mark has certainly ended.
pub(super) fn has_ended(pid: &str, mark: &str) -> bool {
    let Some((at, started)) = mark.split_once('-') else {
        return false;
    };
    if place().as_deref() != Some(at) {
        return false;
    }
    match observe(pid) {
        Observed::Running { start } => start != started,
        Observed::Ended => true,
        Observed::Unknown => false,
    }
}

/// The state of a process id.
enum Observed {
    /// A process has it that was started then, in ticks since the boot.
    Running { start: String },
    /// No process has it, or one that has ended and whose parent has not waited for it.
    Ended,
    /// The system does not show it.
    Unknown,
}

fn observe(pid: &str) -> Observed {
    if pid.is_empty() || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
        return Observed::Unknown;
    }
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) if error.kind() == ErrorKind::NotFound => return Observed::Ended,
        Err(_) => return Observed::Unknown,
    };
    // The name of the program, in parentheses, may have any characters.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    match (fields.next(), fields.nth(18)) {
        (Some("Z" | "X"), _) => Observed::Ended,
        (Some(_), Some(start)) => Observed::Running {
            start: start.to_owned(),
        },
        _ => Observed::Unknown,
    }
}

/// Returns whether `/proc` shows the processes of all users, by the list of mounts.
fn shows_all_processes(mounts: &str) -> bool {
    mounts.lines().any(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        matches!(fields[..], [_, "/proc", "proc", options, ..] if !options.contains("hidepid="))
    })
}

/// Returns a digest of the boot and the namespace of process ids. `None` if `/proc` does not show all processes of this namespace.
fn place() -> Option<String> {
    let own = fs::read_link("/proc/self").ok()?;
    let shows_this_namespace = own.to_str() == Some(std::process::id().to_string().as_str());
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    if !shows_this_namespace || !shows_all_processes(&mounts) {
        return None;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let digest = Md5::digest(format!("{boot}{}", namespace.display()));
    Some(digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    // Spec: DISP-13
    #[test]
    fn a_process_has_ended_when_its_id_is_free_or_used_again() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id().to_string();
        let Observed::Running { start } = observe(&pid) else {
            panic!("it runs");
        };
        let place = place().unwrap();
        let mark = format!("{place}-{start}");
        assert!(!has_ended(&pid, &mark));
        assert!(
            has_ended(&pid, &format!("{place}-{start}0")),
            "another process has its id"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has_ended(&pid, &mark));
        for unknown in [format!("00000000-{start}"), "unlocked".into(), String::new()] {
            assert!(!has_ended(&pid, &unknown), "{unknown}");
        }
        assert!(!has_ended("../1", &mark));
    }

    /// A process that `/proc` hides may run.
    // Spec: DISP-13
    #[test]
    fn hidden_processes_have_not_ended() {
        let root = "/dev/vda / ext4 rw,relatime 0 0\n";
        for (mount, shows_all) in [
            ("proc /proc proc rw,nosuid 0 0", true),
            ("proc /proc proc rw,nosuid,hidepid=2 0 0", false),
            ("proc /proc proc rw,hidepid=invisible,nosuid 0 0", false),
            ("proc /jail/proc proc rw 0 0", false),
        ] {
            assert_eq!(
                shows_all_processes(&format!("{root}{mount}\n")),
                shows_all,
                "{mount}"
            );
        }
    }

    // Spec: DISP-13
    #[test]
    fn this_process_has_not_ended() {
        let mark = own_mark().unwrap();
        assert!(!has_ended(&std::process::id().to_string(), &mark));
    }

    /// A process keeps its id until its parent has waited for it.
    // Spec: DISP-13
    #[test]
    fn a_zombie_has_ended() {
        let mut child = Command::new("cat")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        // The end of its output comes before its end.
        while !matches!(observe(&pid), Observed::Ended) {
            std::thread::yield_now();
        }
        assert!(fs::exists(format!("/proc/{pid}")).unwrap());
        child.wait().unwrap();
    }
}
