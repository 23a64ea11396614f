//! Arrow IPC files.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Date32Builder, Float64Builder, ListBuilder, MapBuilder, StringBuilder,
    TimestampMillisecondBuilder, UInt64Builder,
};
use arrow_array::{
    ArrayRef, DurationMillisecondArray, Float64Array, RecordBatch, StringArray, StructArray,
    TimestampMillisecondArray, UInt64Array,
};
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, root_as_footer};
use arrow_schema::{DataType, Field};
use batch_columnar::{ArrowItemReader, ParquetItemReader};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::stage::{Stage, pass};

/// A row with its place.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Measured {
    id: u64,
    value: Option<f64>,
    #[serde(default)]
    record: u64,
}

#[item_reader("MeasuredRows")]
type MeasuredRows = ArrowItemReader<Measured>;
#[item_writer("MeasuredLines")]
type MeasuredLines = batch_items::JsonLinesItemWriter<Measured>;

/// An instant with several zones, alone and in a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Instants {
    at0: Option<String>,
    all0: Vec<Option<String>>,
    at1: Option<String>,
    all1: Vec<Option<String>>,
    at2: Option<String>,
    all2: Vec<Option<String>>,
    at3: Option<String>,
    all3: Vec<Option<String>>,
    at4: Option<String>,
    all4: Vec<Option<String>>,
}

#[item_reader("ArrowInstants")]
type ArrowInstants = ArrowItemReader<Instants>;
#[item_reader("ParquetInstants")]
type ParquetInstants = ParquetItemReader<Instants>;
#[item_writer("InstantLines")]
type InstantLines = batch_items::JsonLinesItemWriter<Instants>;

pass!(PassInstants: Instants);

pass!(PassMeasured: Measured);

fn batch(ids: &[u64]) -> RecordBatch {
    let unused: ArrayRef = Arc::new(StringArray::from(vec!["x"; ids.len()]));
    let value: Float64Array = ids
        .iter()
        .map(|id| (!id.is_multiple_of(3)).then_some(*id as f64 / 2.0))
        .collect();
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("unused", unused, false),
        ("id", Arc::new(UInt64Array::from(ids.to_vec())), false),
        ("value", Arc::new(value), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Writes a file with batches of these lengths.
fn write(path: &Path, lengths: &[u64], compression: Option<CompressionType>) {
    let options = IpcWriteOptions::default()
        .try_with_compression(compression)
        .unwrap();
    let schema = batch(&[]).schema();
    let mut file = FileWriter::try_new_with_options(File::create(path).unwrap(), &schema, options).unwrap();
    let mut next = 1;
    for length in lengths {
        file.write(&batch(&(next..next + length).collect::<Vec<_>>()))
            .unwrap();
        next += length;
    }
    file.finish().unwrap();
}

fn stage(commit_interval: u32, properties: &str) -> Stage {
    let chunk = format!(
        "reader=\"MeasuredRows\" processor=\"PassMeasured\" writer=\"MeasuredLines\" commit-interval=\"{commit_interval}\""
    );
    Stage::new(
        &chunk,
        &format!("resource=${{dir}}/in*.arrow\noutput=${{dir}}/out\nrecord.field=record\n{properties}"),
    )
}

const BATCHES: &[u64] = &[3, 0, 1, 4];

fn expected() -> String {
    let line = |id: u64| {
        let value = if id.is_multiple_of(3) {
            "null".to_owned()
        } else {
            format!("{:?}", id as f64 / 2.0)
        };
        format!("{{\"id\":{id},\"value\":{value},\"record\":{id}}}\n")
    };
    (1..=8).map(line).collect()
}

/// The size of a buffer, which is allocated before the buffer is read, does not end the process.
///
/// Spec: INPUT-06
#[test]
fn a_buffer_that_declares_more_than_memory_is_an_error() {
    let stage = stage(5, "");
    let path = stage.path().join("in.arrow");
    write(&path, &[1000], Some(CompressionType::LZ4_FRAME));
    let mut file = fs::read(&path).unwrap();
    // The size is before the frame of LZ4.
    let frame = file
        .windows(4)
        .position(|bytes| bytes == [4, 0x22, 0x4d, 0x18])
        .unwrap();
    file[frame - 8..frame].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    fs::write(&path, file).unwrap();
    let message = stage.fails();
    let expected = "a buffer has 1152921504606846976 bytes, for which there is no memory";
    assert!(message.contains(expected), "{message}");
}

/// A description of a batch that reaches into its data is read by the decoder, with any sizes.
///
/// Spec: INPUT-06
#[test]
fn a_batch_that_is_longer_than_declared_is_an_error() {
    let stage = stage(5, "");
    let path = stage.path().join("in.arrow");
    write(&path, &[1000], Some(CompressionType::LZ4_FRAME));
    let mut file = fs::read(&path).unwrap();
    let end = file.len() - 10;
    let length = read_footer_length(file[end..].try_into().unwrap()).unwrap();
    let footer = root_as_footer(&file[end - length..end]).unwrap();
    let block = *footer.recordBatches().unwrap().get(0);
    // The block has its place and the length of its description.
    let place = block.offset().to_le_bytes();
    let found = file.windows(8).rposition(|bytes| bytes == place).unwrap();
    file[found + 8..found + 12].copy_from_slice(&16_i32.to_le_bytes());
    fs::write(&path, file).unwrap();
    let message = stage.fails();
    let expected = format!("the batch at byte {} cannot be read", block.offset());
    assert!(message.contains(&expected), "{message}");
}

/// Whichever row a job fails at, the restart continues with the next uncommitted one.
#[test]
fn a_restart_seeks_to_the_batch() {
    let mut compressions = vec![None, Some(CompressionType::LZ4_FRAME)];
    if cfg!(feature = "zstd") {
        compressions.push(Some(CompressionType::ZSTD));
    }
    for compression in compressions {
        for commit_interval in 1..=5 {
            for fail_at in 0..=8 {
                let stage = stage(commit_interval, "");
                write(&stage.path().join("in.arrow"), BATCHES, compression);
                let mut ended = stage.start([("fail.at", fail_at.to_string())]);
                if fail_at > 0 {
                    assert_eq!(ended.status, BatchStatus::Failed);
                    ended = stage.restart(&ended, [("fail.at", "0")]);
                }
                assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
                assert_eq!(stage.read("out"), expected(), "{commit_interval} {fail_at}");
            }
        }
    }
}

/// The batches before the checkpoint are not read again: they may be damaged.
#[test]
fn earlier_batches_are_not_read_again() {
    let stage = stage(4, "if.changed=resume");
    let path = stage.path().join("in.arrow");
    write(&path, &[2000, 2000], None);
    let failed = stage.start([("fail.at", "2100")]);
    assert_eq!(failed.status, BatchStatus::Failed);
    let mut bytes = fs::read(&path).unwrap();
    // After the first 4 KiB, which identify the file, and within the first batch.
    bytes[8000..9000].fill(0xFF);
    fs::write(&path, bytes).unwrap();
    let again = stage.restart(&failed, [("fail.at", "0")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!((failed.reads, again.reads), (2096, 1904));
}

/// Whichever byte is damaged, the step fails with the name of the file, or reads all rows; no panic of a decoder leaves it, and no skip
/// takes the error for the end of the file.
///
/// Spec: INPUT-06
#[test]
fn a_damaged_file_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole");
    write(&path, BATCHES, None);
    let whole = fs::read(path).unwrap();
    let mut state = 7_usize;
    for _ in 0..120 {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let (at, bit) = ((state >> 20) % whole.len(), (state >> 50) % 8);
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << bit;
        let stage = stage(2, "");
        fs::write(stage.path().join("in.arrow"), damaged).unwrap();
        let ended = stage.start(());
        match ended.status {
            BatchStatus::Completed => assert_eq!(
                ended.reads,
                BATCHES.iter().sum::<u64>() as i64,
                "byte {at}, bit {bit}"
            ),
            _ => assert!(
                ended.message.contains("in.arrow"),
                "byte {at}, bit {bit}: {}",
                ended.message
            ),
        }
    }
}

/// Returns an instant with each of these zones, alone and in a list.
fn instants(zones: &[&str]) -> RecordBatch {
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    for (number, zone) in zones.iter().enumerate() {
        let instants =
            TimestampMillisecondArray::from(vec![Some(1_709_206_200_123), None]).with_timezone(*zone);
        let values = TimestampMillisecondBuilder::new().with_timezone(*zone);
        let mut lists = ListBuilder::new(values);
        for instant in instants.iter() {
            lists.append_value([instant]);
        }
        let lists = lists.finish();
        columns.push((format!("at{number}"), Arc::new(instants), true));
        columns.push((format!("all{number}"), Arc::new(lists), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Whatever the zone, the value is the instant.
///
/// Spec: INPUT-07
#[test]
fn timestamps_with_zones_are_instants() {
    let batch = instants(&["UTC", "Europe/Berlin", "+02:00", "-03:30", "Z"]);
    let expected = {
        let at = |value: &str| {
            (0..5)
                .map(|n| format!("\"at{n}\":{value},\"all{n}\":[{value}]"))
                .collect::<Vec<_>>()
                .join(",")
        };
        format!("{{{}}}\n{{{}}}\n", at("\"2024-02-29T11:30:00.123Z\""), at("null"))
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    let mut file = FileWriter::try_new(File::create(&path).unwrap(), &batch.schema()).unwrap();
    file.write(&batch).unwrap();
    file.finish().unwrap();
    let arrow = fs::read(&path).unwrap();
    let mut file =
        parquet::arrow::ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    file.write(&batch).unwrap();
    file.close().unwrap();
    for (reader, content) in [
        ("ArrowInstants", arrow),
        ("ParquetInstants", fs::read(&path).unwrap()),
    ] {
        let stage = Stage::new(
            &format!("reader=\"{reader}\" processor=\"PassInstants\" writer=\"InstantLines\""),
            "resource=${dir}/in\noutput=${dir}/out",
        );
        fs::write(stage.path().join("in"), content).unwrap();
        stage.completes();
        assert_eq!(stage.read("out"), expected, "{reader}");
    }
}

#[test]
fn bad_files_are_errors() {
    let fails = |name: &str, change: &dyn Fn(&Path)| {
        let stage = stage(10, "");
        change(&stage.path().join(name));
        stage.fails()
    };
    let message = fails("in.arrow", &|path| fs::write(path, "id,value\n1,2\n").unwrap());
    assert!(message.starts_with("cannot read `in.arrow`: "), "{message}");
    let message = fails("in.arrow", &|path| {
        let mut stream = StreamWriter::try_new(File::create(path).unwrap(), &batch(&[]).schema()).unwrap();
        stream.write(&batch(&[1])).unwrap();
        stream.finish().unwrap();
    });
    assert!(message.starts_with("cannot read `in.arrow`: "), "{message}");
    let message = fails("in.arrow", &|path| {
        write(path, BATCHES, None);
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    });
    assert!(message.starts_with("cannot read `in.arrow`: "), "{message}");
    let message = fails("in.arrow", &|path| {
        let columns: [(&str, ArrayRef); 1] = [("idd", Arc::new(UInt64Array::from(vec![1])))];
        let other = RecordBatch::try_from_iter(columns).unwrap();
        let mut file = FileWriter::try_new(File::create(path).unwrap(), &other.schema()).unwrap();
        file.write(&other).unwrap();
        file.finish().unwrap();
    });
    assert_eq!(
        message.lines().next(),
        Some("cannot read `in.arrow`: it has no column `id`, but `idd`; did you mean `idd`?")
    );
    let stage = stage(10, "raw.field=raw");
    write(&stage.path().join("in.arrow"), BATCHES, None);
    assert!(
        stage
            .fails()
            .contains("an Arrow file has no text for `raw.field`; remove the property")
    );
}

#[item_reader("ArrowRecords")]
type ArrowRecords = ArrowItemReader<batch_items::Record>;
pass!(PassArrowRecord: batch_items::Record);

/// Returns the copy of a file with these columns to JSON.
fn arrow_records<const N: usize>(columns: [(&str, ArrayRef); N]) -> Stage {
    let stage = Stage::new(
        "reader=\"ArrowRecords\" processor=\"PassArrowRecord\" writer=\"recordJsonlWriter\"",
        "resource=${dir}/in.arrow\noutput=${dir}/out",
    );
    let columns = columns.map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = File::create(stage.path().join("in.arrow")).unwrap();
    let mut file = FileWriter::try_new(file, &batch.schema()).unwrap();
    file.write(&batch).unwrap();
    file.finish().unwrap();
    stage
}

/// Spec: ITEM-VALUE-01, ITEM-VALUE-02
#[test]
fn lists_and_objects_of_records_are_exact() {
    let mut bytes = ListBuilder::new(BinaryBuilder::new());
    bytes.append_value([Some(b"\xde\xad"), None]);
    let bytes: ArrayRef = Arc::new(bytes.finish());
    let mut counts = MapBuilder::new(None, StringBuilder::new(), UInt64Builder::new());
    counts.keys().append_value("a");
    counts.values().append_value(u64::MAX);
    counts.append(true).unwrap();
    let counts: ArrayRef = Arc::new(counts.finish());
    let stage = arrow_records([("bytes", bytes), ("counts", counts)]);
    stage.completes();
    assert_eq!(
        stage.read("out"),
        "{\"bytes\":[\"\\\\xdead\",null],\"counts\":{\"a\":18446744073709551615}}\n"
    );
    let mut floats = ListBuilder::new(Float64Builder::new());
    floats.append_value([Some(1.5), Some(f64::NAN)]);
    let floats: ArrayRef = Arc::new(floats.finish());
    let one: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let field = || Arc::new(Field::new("x", DataType::Float64, true));
    let twice: ArrayRef = Arc::new(StructArray::from(vec![
        (field(), Arc::clone(&one)),
        (field(), one),
    ]));
    for (column, expected) in [
        (
            floats,
            "a list or an object in a record is JSON, which does not have NaN",
        ),
        (twice, "two fields have the name `x`"),
    ] {
        let message = arrow_records([("c", column)]).fails();
        assert!(message.contains(expected), "{message}");
    }
}

/// A record has no type that says the unit of a number.
///
/// Spec: ITEM-VALUE-11
#[test]
fn durations_and_dates_in_lists_are_texts_in_records() {
    let lasting: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![Some(5500), None]));
    let mut days = ListBuilder::new(Date32Builder::new());
    days.append_value([Some(1), None]);
    days.append_null();
    let days: ArrayRef = Arc::new(days.finish());
    let stage = arrow_records([("lasting", lasting), ("days", days)]);
    stage.completes();
    let expected =
        "{\"lasting\":\"PT5.5S\",\"days\":[\"1970-01-02\",null]}\n{\"lasting\":null,\"days\":null}\n";
    assert_eq!(stage.read("out"), expected);
}
