//! What happens to the files of each writer.

use batch_items::{
    CompositeItemWriter, DelimitedItemWriter, FixedWidthItemWriter, JsonArrayItemWriter, JsonLinesItemWriter,
    RejectListener, XmlItemWriter,
};
use batch_runtime::prelude::*;

use super::happenings::{Entry, check};

#[item_writer("happeningCsv")]
type Csv = DelimitedItemWriter<Entry>;
#[item_writer("happeningFixed")]
type Fixed = FixedWidthItemWriter<Entry>;
#[item_writer("happeningLines")]
type Lines = JsonLinesItemWriter<Entry>;
#[item_writer("happeningArray")]
type Array = JsonArrayItemWriter<Entry>;
#[item_writer("happeningXml")]
type Xml = XmlItemWriter<Entry>;
#[item_writer("happeningBoth")]
type Both = CompositeItemWriter<Entry, Csv, Lines>;
#[skip_listener("happeningRejects")]
#[checkpoint_listener("happeningRejects")]
type Rejects = RejectListener<u64, Entry>;

/// The writers with their properties, and a file that they have written when something happens to it.
const WRITERS: &[(&str, &str, &str)] = &[
    ("happeningCsv", "output=${dir}/out/o.csv", "o.csv.part"),
    (
        "happeningCsv",
        "output=${dir}/out/o.csv\nsync=checkpoint",
        "o.csv.part",
    ),
    (
        "happeningCsv",
        "output=${dir}/out/old.csv\nif.exists=append",
        "old.csv.part",
    ),
    (
        "happeningCsv",
        "output=${dir}/out/o.csv\nmax.items.per.file=4",
        "o-0001.csv.part",
    ),
    (
        "happeningCsv",
        "output=${dir}/out/o.csv\nmax.items.per.file=4",
        "o-0003.csv.part",
    ),
    ("happeningCsv", "output=${dir}/out/o.csv.gz", "o.csv.gz.part"),
    #[cfg(feature = "zstd")]
    ("happeningCsv", "output=${dir}/out/o.csv.zst", "o.csv.zst.part"),
    (
        "happeningFixed",
        "output=${dir}/out/o.txt\ncolumns=id 1-9",
        "o.txt.part",
    ),
    ("happeningLines", "output=${dir}/out/o.jsonl", "o.jsonl.part"),
    ("happeningArray", "output=${dir}/out/o.json", "o.json.part"),
    (
        "happeningXml",
        "output=${dir}/out/o.xml\nelement=n\nmax.items.per.file=4",
        "o-0001.xml.part",
    ),
    ("happeningXml", "output=${dir}/out/o.xml\nelement=n", "o.xml.part"),
    (
        "happeningBoth",
        "1.output=${dir}/out/a.csv.gz\n2.output=${dir}/out/o.jsonl",
        "o.jsonl.part",
    ),
    (
        "happeningBoth",
        "1.output=${dir}/out/o.csv.gz\n2.output=${dir}/out/z.jsonl",
        "o.csv.gz.part",
    ),
    ("happeningLines", "output=${dir}/out/o.jsonl", "rejects.csv"),
    ("happeningLines", "output=${dir}/out/o.jsonl", "raw.txt"),
];

/// Spec: LOSS-01
#[test]
fn nothing_that_happens_to_a_file_loses_items() {
    check(WRITERS);
}
