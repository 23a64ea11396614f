//! The examples of batch-runtime; each directory is one, with its job XML. Their jobs are checked here, all in one test;
//! in a program of one's own it stands beside the artifacts. What several examples use stands beside this file.

#[cfg(test)]
extern crate self as batch_examples;

pub mod flight_reader;

#[cfg(test)]
#[path = "flights/main.rs"]
#[expect(dead_code, reason = "nobody calls `main`")]
mod flights;
#[cfg(test)]
#[path = "hello/main.rs"]
#[expect(dead_code, reason = "nobody calls `main`")]
mod hello;
#[cfg(test)]
#[path = "partitions/main.rs"]
#[expect(dead_code, reason = "nobody calls `main`")]
mod partitions;

#[cfg(test)]
mod tests {
    #[test]
    fn jobs_fit_their_artifacts() {
        batch_runtime::check_jobs!("hello");
        batch_runtime::check_jobs!("flights", data = "data");
        batch_runtime::check_jobs!(deny_warnings, "partitions", data = "data");
    }
}
