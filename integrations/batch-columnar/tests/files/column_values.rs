//! Values of columns in Parquet and Arrow files that the libraries read as another value, or not at all.

use std::fs::{self, File};
use std::sync::Arc;

use arrow_array::builder::{Date64Builder, ListBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Date64Array, DictionaryArray, Int8Array, Int64Array, RecordBatch,
    StructArray, Time32SecondArray, new_empty_array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, IntervalUnit, UnionFields, UnionMode};
use batch_columnar::ArrowItemReader;
use batch_runtime::prelude::*;
use parquet::basic::{BrotliLevel, Compression};
use parquet::data_type::{Int64Type, Int96, Int96Type};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};

use super::stage::{Stage, pass};

/// A row without the other columns of its file.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Id {
    id: i64,
}

#[item_reader("ArrowIds")]
type ArrowIds = ArrowItemReader<Id>;
#[item_writer("IdLines")]
type IdLines = batch_items::JsonLinesItemWriter<Id>;
pass!(PassIds: Id);

fn reading(chunk: &str) -> Stage {
    Stage::with_children(
        chunk,
        "resource=${dir}/in\noutput=${dir}/out",
        r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#,
    )
}

fn reading_records(reader: &str) -> Stage {
    reading(&format!("reader=\"{reader}\" writer=\"recordJsonlWriter\""))
}

/// Writes an Arrow file with the column `a`.
fn write_arrow(stage: &Stage, columns: Vec<(&str, ArrayRef)>) {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = File::create(stage.path().join("in")).unwrap();
    let mut file = FileWriter::try_new(file, &batch.schema()).unwrap();
    file.write(&batch).unwrap();
    file.finish().unwrap();
}

/// Returns a timestamp with a day from 1970.
fn int96(day: i64, nanos: u64) -> Int96 {
    let mut value = Int96::new();
    value.set_data(nanos as u32, (nanos >> 32) as u32, (day + 2_440_588) as u32);
    value
}

/// Spark, Hive and Impala write timestamps of 96 bits. As nanoseconds in 64 bits, 9999-12-31 is in 1816.
///
/// Spec: ITEM-VALUE-12
#[test]
fn timestamps_of_96_bits_are_exact() {
    let schema = "message m { required int64 id; optional int96 at; \
                  optional group all (LIST) { repeated group list { optional int96 element; } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let stage = reading_records("parquetRecordReader");
    let file = File::create(stage.path().join("in")).unwrap();
    let mut file = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut rows = file.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column
        .typed::<Int64Type>()
        .write_batch(&[1, 2, 3, 4], None, None)
        .unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    let last = int96(2_932_896, 0);
    let values = [
        last,
        int96(19_723, 123_456_789),
        int96(-719_162, 86_399_999_999_000),
    ];
    column
        .typed::<Int96Type>()
        .write_batch(&values, Some(&[1, 1, 1, 0]), None)
        .unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    let levels = (&[3, 2, 1, 0, 3], &[0, 1, 0, 0, 0]);
    column
        .typed::<Int96Type>()
        .write_batch(&[last, int96(0, 5_000_000)], Some(levels.0), Some(levels.1))
        .unwrap();
    column.close().unwrap();
    rows.close().unwrap();
    file.close().unwrap();
    stage.completes();
    let expected = "{\"id\":1,\"at\":\"9999-12-31T00:00:00\",\"all\":[\"9999-12-31T00:00:00\",null]}\n\
                    {\"id\":2,\"at\":\"2024-01-01T00:00:00.123456789\",\"all\":[]}\n\
                    {\"id\":3,\"at\":\"0001-01-01T23:59:59.999999\",\"all\":null}\n\
                    {\"id\":4,\"at\":null,\"all\":[\"1970-01-01T00:00:00.005\"]}\n";
    assert_eq!(stage.read("out"), expected);
}

/// Returns a list of dates; one is in an entry that is null.
fn lists_with_hidden_dates() -> ArrayRef {
    let mut lists = ListBuilder::new(Date64Builder::new());
    lists.append_value([Some(0)]);
    lists.values().append_value(1);
    lists.append(false);
    lists.append_value([Some(86_400_000)]);
    Arc::new(lists.finish())
}

/// Spec: ITEM-VALUE-12
#[test]
fn values_keep_their_type_or_are_an_error_of_their_row() {
    let categories = [Some(0), None, Some(1)];
    let numbers = DictionaryArray::<Int8Type>::new(categories.iter().copied().collect::<Int8Array>(), {
        Arc::new(Int64Array::from(vec![5, 7]))
    });
    let booleans = DictionaryArray::<Int32Type>::new(vec![1, 0, 1].into(), {
        Arc::new(BooleanArray::from(vec![Some(true), None]))
    });
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, i32::MAX, 1]));
    let day = Arc::new(Field::new("day", DataType::Date32, true));
    let structs = StructArray::new(vec![day].into(), vec![days], Some(vec![true, false, true].into()));
    for (column, expected) in [
        (Arc::new(numbers) as ArrayRef, ["5", "null", "7"].as_slice()),
        (Arc::new(booleans), &["null", "true", "null"]),
        (
            Arc::new(Date64Array::from(vec![0, 86_400_001, 86_400_000])),
            &["\"1970-01-01\"", "\"1970-01-02\""],
        ),
        (
            Arc::new(Time32SecondArray::from(vec![0, 86_399, 86_400])),
            &["\"00:00:00\"", "\"23:59:59\""],
        ),
        (
            Arc::new(structs),
            &["{\"day\":\"1970-01-01\"}", "null", "{\"day\":\"1970-01-02\"}"],
        ),
        (
            lists_with_hidden_dates(),
            &["[\"1970-01-01\"]", "null", "[\"1970-01-02\"]"],
        ),
    ] {
        let stage = reading_records("arrowRecordReader");
        let kind = column.data_type().clone();
        write_arrow(&stage, vec![("a", column)]);
        stage.completes();
        let lines: String = expected
            .iter()
            .map(|value| format!("{{\"a\":{value}}}\n"))
            .collect();
        assert_eq!(stage.read("out"), lines, "{kind}");
    }
}

/// Spec: INPUT-22
#[test]
fn a_column_that_cannot_be_read_is_named_with_its_type() {
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    for kind in [
        DataType::Decimal32(4, 2),
        DataType::Decimal64(4, 2),
        DataType::Decimal256(40, 2),
        DataType::Interval(IntervalUnit::DayTime),
        DataType::ListView(Arc::clone(&item)),
        DataType::RunEndEncoded(ends, Arc::clone(&item)),
        DataType::Union(
            UnionFields::from_fields(vec![Field::clone(&item)]),
            UnionMode::Dense,
        ),
    ] {
        let columns = || {
            let inner = Arc::new(Field::new("inner", kind.clone(), true));
            let lists = new_empty_array(&DataType::List(inner));
            let id: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
            vec![("id", id), ("lists", lists)]
        };
        let stage = reading_records("arrowRecordReader");
        write_arrow(&stage, columns());
        let expected = format!(
            "cannot read `in`: column `lists` has the type {kind}, which cannot be read; convert it, or read items of a \
             type without a field for it"
        );
        assert_eq!(stage.fails().lines().next(), Some(&*expected));
        let stage = reading("reader=\"ArrowIds\" processor=\"PassIds\" writer=\"IdLines\"");
        write_arrow(&stage, columns());
        stage.completes();
    }
}

/// Spec: INPUT-22
#[test]
fn a_compression_that_cannot_be_read_is_named() {
    for (codec, name) in [
        (Compression::LZ4_RAW, "lz4"),
        (Compression::LZ4, "lz4"),
        (Compression::BROTLI(BrotliLevel::default()), "brotli"),
    ] {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let mut bytes = Vec::new();
        let mut file = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        file.write(&batch).unwrap();
        file.close().unwrap();
        let stage = reading_records("parquetRecordReader");
        fs::write(stage.path().join("in"), &bytes).unwrap();
        stage.completes();
        // The last footer counts.
        let input = File::open(stage.path().join("in")).unwrap();
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&input).unwrap();
        let row_group = metadata.row_group(0).clone();
        let column = row_group
            .column(0)
            .clone()
            .into_builder()
            .set_compression(codec)
            .build()
            .unwrap();
        let row_group = row_group
            .into_builder()
            .set_column_metadata(vec![column])
            .build()
            .unwrap();
        let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), vec![row_group]);
        ParquetMetaDataWriter::new(&mut bytes, &metadata)
            .finish()
            .unwrap();
        let stage = reading_records("parquetRecordReader");
        stage.write("in", &bytes);
        let expected = format!(
            "cannot read `in`: column `id` is compressed by {name}, which cannot be read; write the file with zstd or \
             snappy"
        );
        assert_eq!(stage.fails().lines().next(), Some(&*expected));
    }
}
