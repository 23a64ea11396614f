//! The stable codes of diagnostics: THE table, one line of explanation each.

macro_rules! codes {
    ($($name:ident = $code:literal: $explanation:literal;)*) => {
        $(#[doc = $explanation] pub(crate) const $name: &str = $code;)*

        /// Every code a diagnostic of this crate can carry, with its explanation, in ascending order.
        pub const CODES: &[(&str, &str)] = &[$(($code, $explanation)),*];
    };
}

codes! {
    TOO_LARGE = "JSL0001": "the file is larger than a job file may be";
    ENCODING = "JSL0002": "the file is not UTF-8 or UTF-16, or is not in the encoding it declares";
    NOT_WELL_FORMED = "JSL0003": "the file is not well-formed XML";
    DOCTYPE = "JSL0004": "a document type declaration is never processed";
    LIMIT = "JSL0005": "the document is deeper, has more elements or attributes, or longer texts, than allowed";
    UNDEFINED_ENTITY = "JSL0006": "of entities only `lt`, `gt`, `amp`, `apos` and `quot` are defined";
    OTHER_ROOT = "JSL0007": "the root element is not job, step, flow or split: the file is no job file";
    UNKNOWN_ELEMENT = "JSL0010": "an element the draft does not define at that place";
    UNKNOWN_ATTRIBUTE = "JSL0011": "an attribute the draft does not define on that element";
    UNKNOWN_TARGET = "JSL0012": "a transition or restart names an element that does not exist at that level";
    TEXT = "JSL0013": "text between the tags, where only elements belong";
    REPEATED_ELEMENT = "JSL0014": "an element that may stand at most once in its parent occurs again";
    MISSING_ATTRIBUTE = "JSL0015": "a required attribute is missing";
    EMPTY_VALUE = "JSL0016": "an attribute that must name something is empty";
    BAD_BOOLEAN = "JSL0017": "a boolean is one of true, false, 1 and 0";
    BAD_INTEGER = "JSL0018": "an integer is not written as one or is out of its range";
    BAD_CHOICE = "JSL0019": "the value is none of those the attribute allows";
    BAD_ID = "JSL0020": "an id is too long or holds a character that ids may not hold";
    DUPLICATE_ID = "JSL0021": "two execution elements of a job have the same id";
    DUPLICATE_PROPERTY = "JSL0022": "two properties of one list have the same name and target";
    MISPLACED_TARGET = "JSL0023": "`target` belongs on properties of a chunk, step or partition only";
    STEP_BODY = "JSL0024": "a step holds exactly one of chunk and batchlet";
    CHECKPOINT_ALGORITHM = "JSL0025": "a checkpoint algorithm and the policy `custom` go together";
    NEXT_TWICE = "JSL0026": "a step has either a `next` attribute or `next` elements";
    BAD_TARGET = "JSL0027": "a transition or restart names an element that may not be its target";
    TRANSITION_CYCLE = "JSL0028": "`next` attributes lead back to where they started";
    EMPTY_JOB = "JSL0029": "a job holds at least one step, flow or split that is not abstract";
    ABSTRACT_JOB = "JSL0030": "an abstract job serves as a parent and cannot be started";
    NOT_A_JOB = "JSL0032": "a document whose root is a step, flow or split cannot be started";
    UNKNOWN_PARENT = "JSL0033": "`parent` names an element that does not exist in the job or on the job path";
    PARENT_KIND = "JSL0034": "an element inherits only from one of its own kind";
    AMBIGUOUS_PARENT = "JSL0035": "`parent` names an id that several documents have";
    INHERITANCE_CYCLE = "JSL0036": "an element inherits from itself";
    INHERITANCE_LIMIT = "JSL0037": "inheritance goes over more generations, or gives more elements, than allowed";
    INCOMPLETE_PARENT = "JSL0038": "a parent that lacks something required is marked abstract";
    MALFORMED_SYMBOL = "JSL0040": "`${` begins a symbol, which is a name followed by `}`";
    UNRESOLVED_SYMBOL = "JSL0041": "no job parameter, system property or enclosing property has this name";
    SYMBOL_CYCLE = "JSL0042": "the value of a symbol depends on itself";
    SUBSTITUTION_LIMIT = "JSL0043": "substitution makes more text, or takes more work, than allowed";
    LITERAL_ONLY = "JSL0044": "ids of documents, `parent`, and `merge` of a list that inherits hold no symbols";
    EMPTY_CONTAINER = "JSL0045": "a flow holds at least one step, a split at least one flow, that is not abstract";
    DECIDER_TWICE = "JSL0046": "a decision names its decider by `decider` or by `ref`";
    PARTITION_NUMBER = "JSL0047": "the name of a partition property ends with the number of a partition";
    SPLIT_TARGET = "JSL0048": "a flow of a split follows at most one other element";
    PARTITION_ID = "JSL0049": "`X:n` is partition n of the element `X` in the job repository, so nothing else has that id";
    RECORD_POLICY = "JSL0050": "the checkpoint policy `record` is an old name of `item`";
    UNREACHABLE = "JSL0051": "no transition leads to the element, so it never runs";
    XML_VERSION = "JSL0052": "the document is read by the rules of XML 1.0";
    SHADOWED = "JSL0053": "a transition never acts, because another one is always taken before";
    REPEATED = "JSL0054": "a transition leads to an element that has always run by then, and none runs twice";
    TARGET_WITHOUT_CHUNK = "JSL0055": "`target` names an artifact of a chunk, and the step holds a batchlet";
    TWO_CLASSES = "JSL0060": "batch.xml maps one artifact id to two classes";
    TWO_LOADERS = "JSL0061": "the batch.xml files of one program name two preferred loaders";
    NO_ENTRIES = "JSL0062": "a batch.xml holds neither a loader nor an artifact";
}

/// What a code stands for, in one line; `None` for a code this crate does not use.
pub fn explain(code: &str) -> Option<&'static str> {
    CODES
        .iter()
        .find(|(known, _)| *known == code)
        .map(|(_, explanation)| *explanation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_ascending() {
        assert!(CODES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(explain(UNKNOWN_TARGET), Some(CODES[9].1));
        assert_eq!(explain("JSL9999"), None);
    }
}
