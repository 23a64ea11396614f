//! The ids of the repository.
//!
//! Spec: ID-03, ID-04

use std::fmt;
use std::num::ParseIntError;
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
