//! `PropertySubstitutionTests`.

use batch_runtime::BatchStatus::Completed;

use crate::case::{Case, case};

/// The parameters of the batchlet with properties of several types.
const TYPED: &str = "stringProp=HappyBatchProperties, booleanProp1=true, booleanProp2=Nope, doubleProp1=234.432, \
    doubleProp2=123.321, floatProp1=11234.432, floatProp2=11123.321, intProp1=7777, intProp2=8888, \
    longProp1=1234567890123, longProp2=12345678901234, shortProp1=333, shortProp2=444";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = plain();
    cases.extend(substituted());
    cases.push(typed());
    cases
}

fn plain() -> Vec<Case> {
    vec![
        case(
            "PropertySubstitutionTests.testBatchArtifactPropertyInjection",
            "job_properties2",
        )
        .start("")
        .property("myProperty1", "value1"),
        case(
            "PropertySubstitutionTests.testInitializedPropertyIsOverwritten",
            "job_properties2",
        )
        .start("")
        .property("myProperty2", "value2"),
        case(
            "PropertySubstitutionTests.testPropertyWithJobParameter",
            "job_properties2",
        )
        .start("mySubmittedProp=mySubmittedValue")
        .property("mySubmittedProp", "mySubmittedValue"),
        case(
            "PropertySubstitutionTests.testDefaultPropertyName",
            "job_properties2",
        )
        .start("")
        .property("property4", "value4"),
        case(
            "PropertySubstitutionTests.testGivenPropertyName",
            "job_properties2",
        )
        .start("")
        .property("myProperty4", "value4"),
        case(
            "PropertySubstitutionTests.testPropertyInnerScopePrecedence",
            "job_properties2",
        )
        .start("")
        .property("batchletProp", "batchletPropValue"),
    ]
}

fn substituted() -> Vec<Case> {
    vec![
        case(
            "PropertySubstitutionTests.testPropertyQuestionMarkSimple",
            "job_properties2",
        )
        .system("file.name.junit", "myfile1.txt")
        .start("")
        .property("defaultPropName1", "myfile1.txt"),
        case(
            "PropertySubstitutionTests.testPropertyQuestionMarkComplex",
            "job_properties2",
        )
        .system("file.name.junit", "myfile2")
        .system("file.separator", "/")
        .start("")
        .property("defaultPropName2", "/myfile2.txt"),
        case(
            "PropertySubstitutionTests.testPropertyWithConcatenation",
            "job_properties2",
        )
        .start("myFilename=testfile1")
        .property("myConcatProp", "testfile1.txt"),
        case(
            "PropertySubstitutionTests.testJavaSystemProperty",
            "job_properties2",
        )
        .system("file.separator", "/")
        .start("myFilename=testfile2")
        .property("myJavaSystemProp", "/test/testfile2.txt"),
    ]
}

/// The three names of one artifact.
fn typed() -> Case {
    let names = [
        "CDIDependentScopedBatchletPropsNonString",
        "dependentScopedBatchletPropsNonString",
        "com.ibm.jbatch.tck.artifacts.cdi.DependentScopedBatchletPropsNonString",
    ];
    let empty = case(
        "PropertySubstitutionTests.testCDIBatchPropsNonString",
        "batch_props_non_string",
    );
    names.iter().fold(empty, |case, name| {
        case.start(format!("refName={name}, {TYPED}")).is(Completed)
    })
}
