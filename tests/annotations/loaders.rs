//! Every loader of the program is in the registry, under the path of its type and the class it declares.
//!
//! Spec: LOADER-06, LOADER-13

use batch_runtime::__private::LoaderRegistration;

mod pools {
    use batch_runtime::prelude::*;

    #[derive(BatchArtifact)]
    struct Tally;

    #[batchlet]
    impl Tally {
        #[process]
        fn process(&self) -> String {
            "DONE".into()
        }
        #[cancel]
        fn cancel(&self) {}
    }

    #[derive(Default)]
    pub(super) struct Plain;

    #[artifact_loader]
    impl BatchArtifactLoader for Plain {
        fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
            Ok((reference == "tally").then(|| LoadedArtifact::new(Tally)))
        }
    }

    #[derive(Default)]
    pub(super) struct Of<T>(T);

    #[artifact_loader(class = "com.example.Numbers")]
    impl BatchArtifactLoader for self::Of<u32> {
        fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
            Err(BatchError::msg(self.0))
        }
    }

    #[cfg(any())]
    #[artifact_loader]
    impl BatchArtifactLoader for Nowhere {}
}

#[test]
fn every_loader_is_registered() {
    let all = batch_runtime::__private::inventory::iter::<LoaderRegistration>();
    let mut found: Vec<_> = all
        .filter(|loader| loader.class.starts_with(module_path!()))
        .collect();
    found.sort_by_key(|loader| loader.line);
    let classes: Vec<_> = found
        .iter()
        .map(|loader| (loader.class.rsplit("::").next(), loader.declared_class))
        .collect();
    assert_eq!(
        classes,
        [(Some("Plain"), None), (Some("Of"), Some("com.example.Numbers"))]
    );
    let loaded = (found[0].make)().load("tally").unwrap();
    assert!(format!("{loaded:?}").contains("pools::Tally"));
    assert!((found[0].make)().load("Tally").unwrap().is_none());
    assert_eq!((found[1].make)().load("x").unwrap_err().to_string(), "0");
}
