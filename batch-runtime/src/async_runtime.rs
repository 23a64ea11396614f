//! The tokio runtime of `async` methods. Every thread that calls artifacts is within it.
// Spec: ASYNC-01, ASYNC-02

#[cfg(feature = "tokio")]
pub(crate) use with_tokio::AsyncRuntime;
#[cfg(feature = "tokio")]
pub use with_tokio::block_on;
#[cfg(not(feature = "tokio"))]
pub(crate) use without_tokio::AsyncRuntime;

#[cfg(feature = "tokio")]
mod with_tokio {
    use std::sync::OnceLock;

    use tokio::runtime::{Builder, EnterGuard, Handle, Runtime, RuntimeFlavor};

    /// The tokio runtime that the program has set, if it has set one.
    #[derive(Clone, Default)]
    pub(crate) struct AsyncRuntime(Option<Handle>);

    /// Keeps the thread within a tokio runtime.
    pub(crate) struct Entered<'a> {
        _guard: Option<EnterGuard<'a>>,
    }

    impl AsyncRuntime {
        pub(crate) fn new(handle: Handle) -> Self {
            Self(Some(handle))
        }

        /// Returns the runtime that the calling thread is within, for a thread that it starts.
        pub(crate) fn of_this_thread() -> Self {
            Self(Handle::try_current().ok())
        }

        /// Returns whether one thread runs all its tasks.
        pub(crate) fn has_one_thread(&self) -> bool {
            let flavor = self.0.as_ref().map(Handle::runtime_flavor);
            flavor.is_some_and(|flavor| matches!(flavor, RuntimeFlavor::CurrentThread))
        }

        /// Places the calling thread within the runtime.
        pub(crate) fn enter(&self) -> Entered<'_> {
            Entered {
                _guard: self.0.as_ref().map(Handle::enter),
            }
        }
    }

    /// Completes the future of an `async` method, or of an asynchronous client in a destination, on the calling thread, within the runtime of the program or, without one, in one that
    /// the first call starts.
    ///
    /// # Panics
    /// If the future panics, if that runtime cannot be started, or on a thread that runs asynchronous tasks itself.
    pub fn block_on<F: Future>(future: F) -> F::Output {
        match Handle::try_current() {
            Ok(handle) => handle.block_on(future),
            Err(_) => own_runtime().block_on(future),
        }
    }

    /// Returns the runtime of a program that has set none. It has a few threads because only timers and connections need them.
    fn own_runtime() -> &'static Runtime {
        static RUNTIME: OnceLock<Runtime> = OnceLock::new();
        RUNTIME.get_or_init(|| {
            let mut builder = Builder::new_multi_thread();
            let started = builder
                .worker_threads(2)
                .thread_name("batch-async")
                .enable_all()
                .build();
            started
                .unwrap_or_else(|error| panic!("cannot start the tokio runtime of `async` methods: {error}"))
        })
    }
}

#[cfg(not(feature = "tokio"))]
mod without_tokio {
    use std::marker::PhantomData;

    /// No tokio runtime.
    #[derive(Clone, Default)]
    pub(crate) struct AsyncRuntime(());

    /// Nothing.
    pub(crate) struct Entered<'a>(PhantomData<&'a ()>);

    impl AsyncRuntime {
        pub(crate) fn of_this_thread() -> Self {
            Self(())
        }

        pub(crate) fn has_one_thread(&self) -> bool {
            false
        }

        pub(crate) fn enter(&self) -> Entered<'_> {
            Entered(PhantomData)
        }
    }
}
