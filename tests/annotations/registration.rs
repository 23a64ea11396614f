//! Every artifact of the program is in the registry, under its name and the path of its type.
//!
//! Spec: ART-01, ART-02, READ-01, PROC-01, WRITE-01, WRITE-02, WRITE-03, BLET-01, LISTEN-JOB-01, LISTEN-STEP-01

use batch_runtime::__private::{ArtifactRegistration, Role};

mod jobs {
    use batch_runtime::prelude::*;

    #[derive(BatchArtifact)]
    pub(super) struct Tally;

    #[batchlet]
    impl Tally {
        #[process]
        fn process(&self) -> String {
            "DONE".into()
        }

        #[cancel]
        fn cancel(&self) {}
    }

    #[job_listener("tally-listener", class = "com.example.Tally")]
    impl Tally {
        #[after_job]
        fn after(&mut self) {}
    }

    #[step_listener(value = "tally-listener")]
    impl self::Tally {
        #[after_step]
        fn after_step(&mut self) {}
    }
}

#[test]
fn every_role_of_a_type_is_registered() {
    let mut found: Vec<_> = batch_runtime::__private::inventory::iter::<ArtifactRegistration>()
        .filter(|artifact| artifact.class.starts_with(module_path!()))
        .map(|artifact| {
            (
                artifact.role(),
                artifact.name,
                artifact.class,
                artifact.declared_class,
                artifact.line,
            )
        })
        .collect();
    found.sort_by_key(|artifact| artifact.4);
    assert_eq!(
        found
            .iter()
            .map(|&(role, name, ..)| (role, name))
            .collect::<Vec<_>>(),
        [
            (Role::Batchlet, "Tally"),
            (Role::JobListener, "tally-listener"),
            (Role::StepListener, "tally-listener")
        ]
    );
    assert!(
        found.iter().all(|artifact| artifact.2.ends_with("::jobs::Tally")),
        "{found:?}"
    );
    assert_eq!(found[0].3, None);
    assert_eq!(found[1].3, Some("com.example.Tally"));
    assert_eq!(found[0].4, 13);
}

/// The guide lists the roles in the same order as the role table.
#[test]
fn the_guide_lists_every_role() {
    let guide = include_str!("../../docs/guide/artifacts.md");
    let index = batch_runtime::__private::role_index!();
    assert!(
        guide.contains(index),
        "docs/guide/artifacts.md lacks this table:\n{index}"
    );
}
