use batch_runtime::embed_jobs;

const JOBS: &str = "jobs";

fn main() {
    let _: &[(&str, &str)] = embed_jobs!("no-such-directory");
    let _: &[(&str, &str)] = embed_jobs!(".");
    let _ = embed_jobs!(JOBS);
    let _ = embed_jobs!();
}
