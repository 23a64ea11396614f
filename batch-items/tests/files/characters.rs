//! Characters that contain a byte of ASCII, or look like a byte-order mark.

use super::stage::Stage;

const PROPERTIES: &str = "header=false\ncolumns=a,b\ndelimiter=|\nescape=\\";

/// Writes a file by the writer of records, and returns it as JSON by the reader.
fn copied(encoding: &str, json: &str) -> String {
    let out = Stage::new(
        "reader=\"jsonlRecordReader\" writer=\"recordCsvWriter\"",
        &format!("resource=${{dir}}/in\noutput=${{dir}}/out\nencoding@writer={encoding}\n{PROPERTIES}"),
    );
    out.write("in", json);
    out.completes();
    let back = Stage::new(
        "reader=\"csvRecordReader\" writer=\"recordJsonlWriter\" commit-interval=\"1\"",
        &format!("resource=${{dir}}/in\noutput=${{dir}}/out\nencoding={encoding}\n{PROPERTIES}"),
    );
    back.write("in", std::fs::read(out.path().join("out")).unwrap());
    back.completes();
    back.read("out")
}

/// The second byte of `ソ` in Shift_JIS is a backslash, and the second byte of `ポ` is `|`.
///
/// Spec: ITEM-VALUE-02, INPUT-01
#[test]
fn a_byte_of_a_character_is_no_delimiter() {
    for (encoding, text) in [
        ("shift_jis", r#"ソx \"ポ| 表"#),
        ("gbk", r#"寍|\"丂\\x"#),
        ("gb18030", r#"寍|\"丂😀x"#),
        ("big5", r#"功\"許x|"#),
        ("euc-kr", r#"갂|\"x"#),
        ("iso-2022-jp", r#"ソ|\"表x"#),
    ] {
        let json = format!("{{\"a\":\"{text}\",\"b\":\"1\"}}\n{{\"a\":\"2\",\"b\":\"{text}\"}}\n");
        assert_eq!(copied(encoding, &json), json, "{encoding}");
    }
}

/// The encodings write these characters as the bytes of other ones.
///
/// Spec: ITEM-VALUE-02
#[test]
fn a_character_is_not_written_as_another_one() {
    for (encoding, character) in [
        ("shift_jis", "¥"),
        ("shift_jis", "‾"),
        ("euc-jp", "¥"),
        ("iso-2022-jp", "\u{2212}"),
        ("iso-2022-jp", "ｱ"),
    ] {
        let out = Stage::new(
            "reader=\"jsonlRecordReader\" writer=\"recordCsvWriter\"",
            &format!("resource=${{dir}}/in\noutput=${{dir}}/out\nencoding@writer={encoding}"),
        );
        out.write("in", format!("{{\"a\":\"x{character}\"}}\n"));
        let message = out.fails();
        assert!(message.contains("does not exist in "), "{encoding}: {message}");
    }
}

/// Spec: ITEM-VALUE-02
#[test]
fn a_first_character_is_no_byte_order_mark() {
    let json = "{\"a\":\"\u{feff}x\",\"b\":\"1\"}\n";
    assert_eq!(copied("utf-8", json), json);
}

/// Spec: ITEM-VALUE-02
#[test]
fn json_has_no_number_for_infinity() {
    let stage = Stage::new(
        "reader=\"csvRecordReader\" processor=\"recordProcessor\" writer=\"recordJsonlWriter\"",
        "resource=${dir}/in\noutput=${dir}/out\ntypes@processor=a=float",
    );
    stage.write("in", "a\ninf\n");
    let message = stage.fails();
    assert!(message.contains("JSON has no number for inf"), "{message}");
}
