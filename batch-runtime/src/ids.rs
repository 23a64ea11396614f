//! The ids of the repository, and the name of a job.
// Spec: ID-03, ID-04, NEST-05

use std::fmt;
use std::num::ParseIntError;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;
            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                text.parse().map(Self)
            }
        }
    )*};
}

ids! {
    /// Id of a job instance, unique in its repository.
    JobInstanceId;
    /// Id of a job execution, unique in its repository.
    JobExecutionId;
    /// Id of a step execution, unique in its repository.
    StepExecutionId;
    /// Id of a remote launch. No job execution of its repository has the same.
    LaunchId;
}

/// The id of a job that an artifact runs, as the type of its `#[batch_property]`. A job whose artifact names an unknown job, or a job that
/// would run itself in this way, is rejected before it starts.
///
/// ```
/// use batch_runtime::JobName;
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct RunLater {
///     #[batch_property]
///     job: JobName,
/// }
///
/// let name: JobName = "statements".parse()?;
/// assert_eq!(name.len(), 10);
/// # Ok::<(), &str>(())
/// ```
// Spec: NEST-05
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobName(String);

impl FromStr for JobName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "" => Err("expected the id of a job"),
            text => Ok(Self(text.to_owned())),
        }
    }
}

impl Deref for JobName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}
