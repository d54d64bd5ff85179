//! What an earlier run of the application left behind, and what is none of our business.

use std::{
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use turnkeep_model::{Effect, RuntimeId, state::ProcessIdentity};

use crate::fake::{Stage, alive, is_alive};

/// A process as an earlier run would have started it, or as anybody could.
struct Other(Child);

impl Other {
    fn new(script: &str, marker: Option<String>) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        if let Some(marker) = marker {
            command.env("TURNKEEP_RUNTIME", marker);
        }
        Self(command.spawn().expect("sh starts"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn identity(&self) -> ProcessIdentity {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("it runs");
        let fields: Vec<_> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
        ProcessIdentity {
            pid: self.pid(),
            start_ticks: fields[19].parse().expect("a number"),
            boot_id: boot_id.trim().to_owned(),
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_left_over_process_is_ended_by_its_identity_with_its_children() {
    let mut stage = Stage::new("exit 1");
    let marker = format!("{}-9", stage.instance);
    let left = Other::new("trap '' TERM; setsid sleep 600 & env -i sleep 600 & while true; do sleep 1; done", Some(marker));
    let process = left.identity();
    stage.world.perform(Effect::Reap { runtime: RuntimeId(9), process: Some(process) });
    assert_eq!(stage.gone().await, None);
    assert!(!is_alive(left.pid()));
    assert_eq!(alive(&stage.instance), []);
}

#[tokio::test]
async fn a_left_over_process_whose_number_was_never_written_down_is_found_by_its_marker() {
    let mut stage = Stage::new("exit 1");
    let left = Other::new("exec sleep 600", Some(format!("{}-9", stage.instance)));
    stage.world.perform(Effect::Reap { runtime: RuntimeId(9), process: None });
    assert_eq!(stage.gone().await, None);
    assert!(!is_alive(left.pid()));
}

#[tokio::test]
async fn a_left_over_process_that_cleared_its_environment_is_found_by_its_tag() {
    let mut stage = Stage::new("exit 1");
    let tagged = |marker: &str| {
        let tag = turnkeep_guard::tag_of(marker);
        Other::new(&format!("exec prlimit --locks={tag}:{tag} env -i sleep 600"), None)
    };
    let left = tagged(&format!("{}-9", stage.instance));
    let of_another = tagged(&format!("{}-91", stage.instance));
    harness::wait::until("their tags", || {
        let tagged = |it: &Other| {
            let limits = std::fs::read_to_string(format!("/proc/{}/limits", it.pid())).unwrap_or_default();
            limits.lines().any(|line| line.starts_with("Max file locks") && !line.contains("unlimited"))
        };
        (tagged(&left) && tagged(&of_another)).then_some(())
    })
    .expect("they are up");
    stage.world.perform(Effect::Reap { runtime: RuntimeId(9), process: None });
    assert_eq!(stage.gone().await, None);
    assert!(!is_alive(left.pid()) && is_alive(of_another.pid()));
}

#[tokio::test]
async fn nothing_that_is_not_ours_is_ended() {
    let mut stage = Stage::new("exit 1");
    let foreign = Other::new("exec sleep 600", None);
    let of_another = Other::new("exec sleep 600", Some(format!("{}-91", stage.instance)));
    let of_another_instance = Other::new("exec sleep 600", Some("somebody-else-9".to_owned()));
    // The number of a process that has ended, which a foreign one has now.
    let reused = ProcessIdentity { start_ticks: foreign.identity().start_ticks - 1, ..foreign.identity() };
    stage.world.perform(Effect::Reap { runtime: RuntimeId(9), process: Some(reused) });
    assert_eq!(stage.gone().await, None);
    let before_a_reboot = ProcessIdentity { boot_id: "another boot".to_owned(), ..foreign.identity() };
    stage.world.perform(Effect::Reap { runtime: RuntimeId(9), process: Some(before_a_reboot) });
    assert_eq!(stage.gone().await, None);
    for other in [&foreign, &of_another, &of_another_instance] {
        assert!(is_alive(other.pid()));
    }
}

#[tokio::test]
async fn a_sign_in_that_outlived_the_application_is_ended_at_the_next_start() {
    let stage = Stage::new("exit 1");
    let left = Other::new("exec sleep 600", Some(format!("{}-aside-sign-in-4", stage.instance)));
    let Stage { world, root, instance, .. } = stage;
    world.shut().await;
    let mut stage = Stage::again(root, instance, crate::fake::FakeAgent::new());
    stage.input("the look around", |input| matches!(input, turnkeep_model::Input::ProviderFound { .. }).then_some(())).await;
    assert!(!is_alive(left.pid()));
}
