//! Compiles the program again when a job file is added: its jobs are inside it.

fn main() {
    println!("cargo::rerun-if-changed=jobs");
}
