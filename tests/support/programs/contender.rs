//! One process of many that want the same thing of a repository at the same moment.

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    batch_tests::contender::child(&arguments);
}
