//! Attributes by their paths, artifacts in modules, in a function, under `#[cfg]` and made by `macro_rules!`.
//!
//! Spec: ART-01, ART-02, ART-04, ART-05
#![deny(warnings)]

// Attributes by their paths, artifacts in modules, in a function and under `#[cfg]`.
mod outer {
    pub(super) mod inner {
        #[derive(batch_runtime::BatchArtifact)]
        pub(super) struct Deep;
    }

    #[batch_runtime::step_listener]
    impl inner::Deep {
        #[batch_runtime::before_step]
        fn begin(&mut self) {}

        #[inline]
        #[allow(clippy::unused_self)]
        #[batch_runtime::after_step]
        /// Documented.
        pub(super) fn end(&mut self) {}

        pub(super) const LIMIT: u32 = 3;
    }

    pub(super) fn limit() -> u32 {
        inner::Deep::LIMIT
    }
}

mod conditional {
    use batch_runtime::prelude::*;

    #[derive(BatchArtifact)]
    struct Numbers;

    #[item_reader]
    impl Numbers {
        #[cfg(unix)]
        #[open]
        fn open_unix(&mut self, _checkpoint: Option<u32>) {}

        #[cfg(not(unix))]
        #[open]
        fn open_elsewhere(&mut self, _checkpoint: Option<u64>) {}

        #[read_item]
        fn read(&mut self) -> Option<u32> {
            None
        }

        #[cfg(unix)]
        #[get_checkpoint_info]
        fn position(&mut self) -> u32 {
            0
        }

        #[cfg(not(unix))]
        #[get_checkpoint_info]
        fn position(&mut self) -> u64 {
            0
        }

        #[cfg(any())]
        #[close]
        fn close(&mut self) -> ThisTypeDoesNotExist {}
    }

    #[derive(BatchArtifact)]
    #[cfg(any())]
    struct Nowhere;

    #[step_listener]
    #[cfg(any())]
    impl Nowhere {
        #[before_step]
        fn begin(&mut self) {}
    }
}

macro_rules! listener {
    ($name:ident, $type:ty, $result:ty) => {
        #[derive(batch_runtime::BatchArtifact)]
        struct $name;

        #[batch_runtime::step_listener]
        impl $type {
            #[batch_runtime::before_step]
            fn begin(&mut self) -> $result {
                Ok(())
            }
        }
    };
}

listener!(First, First, Result<(), std::io::Error>);
listener!(Second, Second, Result<(), batch_runtime::BatchError>);

#[test]
fn every_artifact_is_registered() {
    use batch_runtime::prelude::*;

    #[derive(BatchArtifact)]
    struct Local;

    #[batchlet]
    impl Local {
        #[process]
        fn process(&self) -> String {
            String::new()
        }

        #[cancel]
        fn cancel(&self) {}
    }

    assert_eq!(outer::limit(), 3);
    assert_eq!(
        super::registered(module_path!()),
        [
            ("step_listener", "Deep"),
            ("item_reader", "Numbers"),
            ("step_listener", "First"),
            ("step_listener", "Second"),
            ("batchlet", "Local")
        ]
    );
}
