//! The role traits call the user's methods, and return their errors unchanged.
//!
//! Spec: READ-03, READ-06, READ-08, PROC-02, PROC-03, PROC-04, WRITE-05, WRITE-07, WRITE-08, BLET-02, BLET-03, BLET-06
//! Spec: BLET-10, ART-06

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use batch_runtime::__private::{
    Batchlet, CheckpointInfo, Fill, FillEnd, FillError, ItemProcessor, ItemReader, ItemWriter, StepListener,
};
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Count {
    next: u64,
}

// Each method has the name of the trait's method, with another signature.
#[item_reader]
impl Count {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or_default();
    }

    #[read_item]
    fn fill(&mut self) -> Result<Option<u64>, std::io::Error> {
        self.next += 1;
        match self.next {
            7 => Err(std::io::Error::other("seven")),
            next => Ok((next < 6).then_some(next)),
        }
    }

    #[get_checkpoint_info]
    fn checkpoint_info(&self) -> u64 {
        self.next
    }
}

#[derive(BatchArtifact)]
struct Even;

#[item_processor]
impl Even {
    #[process_item]
    #[allow(clippy::wrong_self_convention)]
    fn into_sink(&self, number: &u64) -> Result<Option<String>, std::fmt::Error> {
        Ok(number.is_multiple_of(2).then(|| number.to_string()))
    }
}

#[derive(BatchArtifact)]
struct Lines {
    lines: Vec<String>,
}

#[item_writer(buffered = false)]
impl Lines {
    #[open]
    fn open(&mut self, checkpoint: Option<Vec<String>>) {
        self.lines = checkpoint.unwrap_or_default();
    }

    #[write_items]
    fn write(&mut self, lines: &[String]) {
        self.lines.extend_from_slice(lines);
    }

    #[get_checkpoint_info]
    fn checkpoint_info(&self) -> Vec<String> {
        self.lines.clone()
    }
}

#[derive(BatchArtifact)]
struct Steps {
    calls: AtomicU32,
}

#[batchlet]
impl Steps {
    #[begin_step]
    fn begin_step(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    #[process]
    fn process(&self) -> Result<String, std::num::ParseIntError> {
        "x".parse::<u32>().map(|_| "DONE".into())
    }

    #[cancel]
    fn cancel(&self) {
        self.calls.fetch_add(10, Ordering::Relaxed);
    }

    #[end_step]
    fn end_step(&self) {
        self.calls.fetch_add(100, Ordering::Relaxed);
    }
}

#[step_listener]
impl Steps {
    #[after_step]
    fn after_step(&mut self) -> Result<(), std::fmt::Error> {
        Err(std::fmt::Error)
    }
}

#[test]
fn reader_and_processor() {
    let mut reader: Box<dyn ItemReader> = Box::new(Count { next: 9 });
    reader.open(None).unwrap();
    let processor: Box<dyn ItemProcessor> = Box::new(Even);
    let (mut sink, stop) = (processor.into_sink(), AtomicBool::new(false));

    let end = reader.fill(&mut Fill::new(&mut sink, &stop, 100, 100)).unwrap();
    assert_eq!(end, FillEnd::EndOfInput);
    assert_eq!(sink.items(0..sink.len()).typed::<String>().unwrap(), ["2", "4"]);
    assert_eq!(reader.checkpoint_info().unwrap().as_json(), "6");

    let error = reader
        .fill(&mut Fill::new(&mut sink, &stop, 100, 100))
        .unwrap_err();
    let FillError::Read(error) = error else {
        panic!("not the reader's error: {error:?}")
    };
    assert!(error.downcast_ref::<std::io::Error>().is_some());

    reader
        .open(Some(&CheckpointInfo::encode(&4_u64).unwrap()))
        .unwrap();
    assert_eq!(reader.checkpoint_info().unwrap().as_json(), "4");
    assert!(
        reader
            .open(Some(&CheckpointInfo::encode(&"four".to_owned()).unwrap()))
            .is_err()
    );
    reader.close().unwrap();

    assert_eq!(<Count as ItemReader>::info().items.name(), "u64");
    assert_eq!(
        <Even as ItemProcessor>::info().input,
        <Count as ItemReader>::info().items
    );
    assert_eq!(
        <Even as ItemProcessor>::info().output,
        <Lines as ItemWriter>::info().items
    );
}

#[test]
fn writer() {
    let mut writer: Box<dyn ItemWriter> = Box::new(Lines { lines: Vec::new() });
    writer
        .open(Some(&CheckpointInfo::encode(&vec!["1".to_owned()]).unwrap()))
        .unwrap();
    assert_eq!(writer.checkpoint_info().unwrap().as_json(), r#"["1"]"#);
    assert!(!<Lines as ItemWriter>::info().buffered);
    assert!(!<Lines as ItemWriter>::info().transactional);
}

#[test]
fn batchlet() {
    let steps = Steps {
        calls: AtomicU32::new(0),
    };
    let batchlet: &dyn Batchlet = &steps;
    batchlet.begin_step().unwrap();
    let error = batchlet.process().unwrap_err();
    assert!(error.downcast_ref::<std::num::ParseIntError>().is_some());
    batchlet.cancel().unwrap();
    batchlet.end_step().unwrap();
    assert_eq!(steps.calls.load(Ordering::Relaxed), 111);
}

#[test]
fn listener() {
    let mut listener: Box<dyn StepListener> = Box::new(Steps {
        calls: AtomicU32::new(0),
    });
    listener.before_step().unwrap();
    assert!(
        listener
            .after_step()
            .unwrap_err()
            .downcast_ref::<std::fmt::Error>()
            .is_some()
    );
}
