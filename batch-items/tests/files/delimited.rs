//! Delimited files.

use batch_items::{DelimitedItemReader, DelimitedItemWriter};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::stage::{Stage, pass};

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub(crate) struct Flight {
    pub(crate) origin: String,
    pub(crate) delay: Option<i32>,
    pub(crate) note: String,
}

#[item_reader("FlightReader")]
pub(crate) type FlightReader = DelimitedItemReader<Flight>;

#[item_writer("FlightWriter")]
pub(crate) type FlightWriter = DelimitedItemWriter<Flight>;

pass!(PassFlight: Flight);

pub(crate) const CHUNK: &str =
    r#"reader="FlightReader" processor="PassFlight" writer="FlightWriter" commit-interval="2""#;

/// Copies `content` with these properties of the reader, and returns the output.
fn copy(content: impl AsRef<[u8]>, properties: &str) -> String {
    let stage = Stage::new(
        CHUNK,
        &format!("resource=${{dir}}/in.csv\noutput=${{dir}}/out.csv\n{properties}"),
    );
    stage.write("in.csv", content);
    let ended = stage.start(());
    if ended.status == BatchStatus::Completed {
        stage.read("out.csv")
    } else {
        ended.message
    }
}

const PLAIN: &str = "origin,delay,note\nMUC,5,on time\nFRA,,\n";

#[test]
fn rows_are_read_by_the_names_of_the_header() {
    assert_eq!(copy(PLAIN, ""), PLAIN);
    assert_eq!(
        copy("note,unused,origin,delay\non time,x,MUC,5\n,y,FRA,\n", ""),
        PLAIN
    );
}

#[test]
fn dirty_files_are_read() {
    let mark = "\u{FEFF}".to_owned() + PLAIN;
    assert_eq!(copy(mark, ""), PLAIN);
    assert_eq!(copy(PLAIN.replace('\n', "\r\n"), ""), PLAIN);
    assert_eq!(copy(PLAIN.trim_end(), ""), PLAIN, "no line end at the end");
    assert_eq!(
        copy("\n\norigin,delay,note\n\nMUC,5,on time\nFRA,,\n\n", ""),
        PLAIN
    );
    let quoted = "origin,delay,note\n\"M\"\"U,C\",5,\"on\ntime\"\n";
    assert_eq!(copy(quoted, ""), quoted);
    let nul = "origin,delay,note\nM\0C,5,x\n";
    assert_eq!(copy(nul, ""), nul);
    assert_eq!(copy("", ""), "", "an empty file has no records");
    assert_eq!(copy("origin,delay,note\n", "columns.of=x"), "");
    let unix = "origin,delay,note\nM\u{fc}nchen,5,\u{4e2d}\n";
    assert_eq!(copy(unix, ""), unix);
}

#[test]
fn the_form_is_a_property() {
    let semicolons = "# by hand\norigin;delay;note\nMUC;5;'a;b'\n#FRA;1;x\n";
    assert_eq!(
        copy(semicolons, "delimiter=;\nquote='\ncomment=#"),
        "origin;delay;note\nMUC;5;'a;b'\n"
    );
    let tabs = copy("MUC\t5\tx\n", "delimiter=tab\ncolumns=origin,delay,note");
    assert_eq!(tabs, "origin\tdelay\tnote\nMUC\t5\tx\n");
    assert_eq!(copy("MUC,5,x\n", "header=false"), "MUC,5,x\n");
    assert_eq!(
        copy("MUC;5;\"x\n", "delimiter=;\nquote=none\nheader=false"),
        "MUC;5;\"x\n"
    );
    assert_eq!(
        copy("origin,delay,note\nMUC,5,\"a\\\"b,\"\n", "escape=\\"),
        "origin,delay,note\nMUC,5,\"a\\\"b,\"\n"
    );
    assert_eq!(
        copy(
            "report of today\nin minutes\norigin,delay,note\nMUC,5,x\n",
            "skip.lines=2"
        ),
        "origin,delay,note\nMUC,5,x\n"
    );
    assert_eq!(
        copy("origin, delay ,note\nMUC , 5 ,x\n", "trim=true"),
        "origin,delay,note\nMUC,5,x\n"
    );
}
