// Spec: ART-01
use batch_runtime::prelude::*;

#[job_listener]
fn before() {}

fn main() {}
