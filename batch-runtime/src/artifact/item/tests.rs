//! Fills and their sinks.

use std::sync::atomic::Ordering;

use super::*;

fn even_halves() -> ItemSink {
    let halve = |item: u64| Ok(item.is_multiple_of(2).then_some(item as f64 / 2.0));
    processor_sink(
        Box::new(()),
        move |_: &mut (), item: u64| halve(item),
        move |_: &mut (), item: &u64| halve(*item),
    )
}

// Spec: CHUNK-LOOP-03, DOM-23
#[test]
fn results_keep_reading_order_and_filtered_items_are_left_out() {
    let (mut sink, stop) = (even_halves(), AtomicBool::new(false));
    let mut numbers = 1..=5u64;
    let mut fill = Fill::new(&mut sink, &stop, 100, 100);
    assert_eq!(
        fill.run(|| Ok(numbers.next())).expect("no error"),
        FillEnd::EndOfInput
    );
    assert_eq!(fill.reads(), 5);
    assert_eq!(sink.items(0..2).typed::<f64>().expect("same type"), [1.0, 2.0]);
}

#[test]
fn ends_at_the_read_limit_when_full_and_on_stop() {
    let (mut sink, stop) = (even_halves(), AtomicBool::new(false));
    let mut numbers = 1u64..;
    let mut check = |max_reads, full_at, expected| {
        let end = Fill::new(&mut sink, &stop, max_reads, full_at).run(|| Ok(numbers.next()));
        assert_eq!(end.unwrap(), expected);
    };
    check(3, 9, FillEnd::Limit);
    check(9, 2, FillEnd::Full);
    stop.store(true, Ordering::Relaxed);
    check(9, 9, FillEnd::Stop);
}

// Spec: CHUNK-LOOP-17
#[test]
fn another_item_type_is_an_error_that_names_it() {
    let (mut sink, stop) = (even_halves(), AtomicBool::new(false));
    let error = Fill::new(&mut sink, &stop, 1, 1)
        .run(|| Ok(Some("text")))
        .expect_err("wrong type");
    assert!(matches!(error, FillError::Mismatch(e) if e.to_string().contains("&str")));
    assert!(sink.items(0..0).typed::<u64>().is_err());
    assert!(sink.items(0..9).typed::<f64>().is_err());
}
