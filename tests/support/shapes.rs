//! The jobs of the sweep, and their logs.

/// A job, and the expected result of its complete instance.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The Job XML, of the job `job`.
    pub xml: &'static str,
    /// The numbers in the table.
    pub rows: fn() -> Vec<i64>,
    /// The name of each step, and its read, written, filtered and skipped items in all executions.
    pub steps: &'static [&'static str],
    /// The files that the steps write, with their content.
    pub files: &'static [(&'static str, &'static str)],
    /// What the context of the job contains.
    pub data: &'static str,
    /// The Job XML of a job `child`, or empty.
    pub child: &'static str,
}

/// The steps of three chunks, by this writer, and a batchlet.
macro_rules! three_chunks {
    ($job:literal, $writer:literal, $properties:literal) => {
        concat!(
            r#"<job id=""#,
            $job,
            r#"">
  <step id="load" next="close">"#,
            $properties,
            r#"
    <chunk reader="Numbers" processor="Wanted" writer=""#,
            $writer,
            r#"" commit-interval="4" skip-limit="9">
      <properties><property name="to" value="12"/></properties>
      <skippable-exception-classes><include class="test.Unwanted"/></skippable-exception-classes>
    </chunk>
  </step>
  <step id="close"><batchlet ref="Done"/></step>
</job>"#
        )
    };
}

/// Three chunks, then a batchlet.
pub const CHUNKS: Shape = Shape {
    xml: three_chunks!("job", "Rows", ""),
    rows: || (1..=12).filter(|n| ![5, 7].contains(n)).collect(),
    steps: &["close 0 0 0 0", "load 12 10 1 1"],
    files: &[],
    data: "",
    child: "",
};

/// The same chunks, which keep the number of their rows as data of the job.
pub const DATA: Shape = Shape {
    xml: three_chunks!("job", "RowsAndData", ""),
    data: r#""rows":["java.lang.Long",10]"#,
    ..CHUNKS
};

/// The same chunks in a job that another one runs.
pub const NESTED: Shape = Shape {
    xml: r#"<job id="job"><step id="run"><batchlet ref="runJob">
  <properties><property name="job" value="child"/><property name="parameters" value="note=x"/></properties>
</batchlet></step></job>"#,
    steps: &["close 0 0 0 0", "load 12 10 1 1", "run 0 0 0 0"],
    child: three_chunks!("child", "Rows", ""),
    ..CHUNKS
};

/// The Job XML of chunks by two processors.
macro_rules! with_two_processors {
    ($property:literal) => {
        concat!(
            r#"<job id="job">
  <step id="load" next="close">
    <properties><property name="batch.chunk.processors" value="2"/>"#,
            $property,
            r#"</properties>
    <listeners>
      <listener ref="Rejects">
        <properties><property name="rejects.output" value="out-rejects.jsonl"/></properties>
      </listener>
    </listeners>
    <chunk reader="Numbers" processor="Wanted" writer="RowsAndFiles" commit-interval="4" skip-limit="9">
      <properties>
        <property name="to" value="12"/>
        <property name="lines.output" value="out-lines.txt"/>
        <property name="arrays.output" value="out.json"/>
        <property name="arrays.max.items.per.file" value="6"/>
        <property name="arrays.sync" value="never"/>
      </properties>
      <skippable-exception-classes><include class="test.Unwanted"/></skippable-exception-classes>
    </chunk>
  </step>
  <step id="close"><batchlet ref="Done"/></step>
</job>"#
        )
    };
}

/// The same three chunks, also to files, by two processors; what is skipped goes to a report.
pub const FILES: Shape = Shape {
    xml: with_two_processors!(""),
    rows: CHUNKS.rows,
    steps: CHUNKS.steps,
    files: &[
        ("out-0001.json", "[\n1,\n2,\n3,\n4,\n6,\n8\n]\n"),
        ("out-0002.json", "[\n9,\n10,\n11,\n12\n]\n"),
        (
            "out-lines.txt",
            "1\n2\n3\n4\n6\n8\n9\n10\n11\n12\n10 numbers, sum 66\n",
        ),
        (
            "out-rejects.jsonl",
            "{\"skip\":1,\"instance\":1,\"step\":\"load\",\"phase\":\"process\",\"error\":\"an unwanted number\",\"item\":7}\n",
        ),
    ],
    data: "",
    child: "",
};

/// The same in a pipeline.
pub const PIPELINE: Shape = Shape {
    xml: with_two_processors!(r#"<property name="batch.chunk.pipeline" value="true"/>"#),
    ..FILES
};

/// The chunks to a table, by one processor, in a pipeline.
pub const PLAIN_PIPELINE: Shape = Shape {
    xml: three_chunks!(
        "job",
        "Rows",
        r#"<properties><property name="batch.chunk.pipeline" value="true"/></properties>"#
    ),
    ..CHUNKS
};

/// A batchlet only.
pub const BATCHLET: Shape = Shape {
    xml: r#"<job id="job"><step id="close"><batchlet ref="Done"/></step></job>"#,
    rows: Vec::new,
    steps: &["close 0 0 0 0"],
    files: &[],
    data: "",
    child: "",
};

/// Two partitions of three chunks on one thread.
pub const PARTITIONS: Shape = Shape {
    xml: r#"<job id="job">
  <properties><property name="batch.partition.threads" value="1"/></properties>
  <step id="load">
    <partition instances="2">
      <properties>
        <property name="from.1" value="0"/><property name="to.1" value="12"/>
        <property name="from.2" value="12"/><property name="to.2" value="24"/>
      </properties>
    </partition>
    <chunk reader="Numbers" processor="Wanted" writer="Rows" commit-interval="4" skip-limit="9">
      <properties><property name="from" value="${from}"/><property name="to" value="${to}"/></properties>
      <skippable-exception-classes><include class="test.Unwanted"/></skippable-exception-classes>
    </chunk>
  </step>
</job>"#,
    rows: || (1..=24).filter(|n| ![5, 7, 17, 19].contains(n)).collect(),
    steps: &["load 0 0 0 0", "load:1 12 10 1 1", "load:2 12 10 1 1"],
    files: &[],
    data: "",
    child: "",
};

/// Moves each call of a processor after the call of the reader, where one processor would have been called; a process may have died
/// before.
pub(crate) fn as_by_one_processor(log: &[String]) -> Vec<String> {
    let item = |line: &str, call: &str| -> Option<String> {
        let item = line.strip_prefix(call)?;
        item.starts_with(|digit: char| digit.is_ascii_digit())
            .then(|| item.to_owned())
    };
    let mut processed: Vec<&String> = log.iter().filter(|line| line.starts_with("process ")).collect();
    let mut moved = Vec::new();
    for line in log.iter().filter(|line| !line.starts_with("process ")) {
        moved.push(line.clone());
        if let Some(number) = item(line, "read ") {
            let call = format!("process {number}");
            let is_call = |line: &&&String| line.split(" !").next() == Some(&call);
            match processed.iter().find(is_call).copied().cloned() {
                Some(found) => {
                    moved.push(found.clone());
                    let place = processed.iter().position(|line| **line == found);
                    place.map(|place| processed.remove(place));
                }
                None => moved.push(call),
            }
        }
    }
    moved
}
