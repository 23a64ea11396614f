//! One of many processes that contend for one repository at the same moment.

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    batch_tests::contender::child(&arguments);
}
