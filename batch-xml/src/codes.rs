//! The stable codes of diagnostics, each with one line of explanation.

macro_rules! codes {
    ($($name:ident = $code:literal: $explanation:literal;)*) => {
        $(#[doc = $explanation] pub(crate) const $name: &str = $code;)*

        /// All codes of diagnostics with their explanations, in ascending order.
        pub const CODES: &[(&str, &str)] = &[$(($code, $explanation)),*];
    };
}

codes! {
    TOO_LARGE = "JSL0001": "the file is larger than the limit for job files";
    ENCODING = "JSL0002": "the file is not UTF-8 or UTF-16, or is not in the encoding it declares";
    NOT_WELL_FORMED = "JSL0003": "the file is not well-formed XML";
    DOCTYPE = "JSL0004": "document type declarations are not supported";
    LIMIT = "JSL0005": "the document exceeds a limit: depth, number of elements or attributes, length of names or values";
    UNDEFINED_ENTITY = "JSL0006": "only the entities `lt`, `gt`, `amp`, `apos` and `quot` are defined";
    OTHER_ROOT = "JSL0007": "the root element is not job, step, flow or split, so the file is not a job file";
    UNKNOWN_ELEMENT = "JSL0010": "the draft does not define the element at that place";
    UNKNOWN_ATTRIBUTE = "JSL0011": "the draft does not define the attribute on that element";
    UNKNOWN_TARGET = "JSL0012": "a transition or restart names an element that does not exist at that level";
    TEXT = "JSL0013": "text between tags where only elements are allowed";
    REPEATED_ELEMENT = "JSL0014": "an element that is allowed once in its parent is repeated";
    MISSING_ATTRIBUTE = "JSL0015": "a required attribute is missing";
    EMPTY_VALUE = "JSL0016": "an attribute that must name something is empty";
    BAD_BOOLEAN = "JSL0017": "the value of a boolean is not true, false, 1 or 0";
    BAD_INTEGER = "JSL0018": "the value of an integer is malformed or out of range";
    BAD_CHOICE = "JSL0019": "the attribute does not allow the value";
    BAD_ID = "JSL0020": "an id is too long or contains a character that is not allowed";
    DUPLICATE_ID = "JSL0021": "two execution elements of a job have the same id";
    DUPLICATE_PROPERTY = "JSL0022": "two properties of one list have the same name and target";
    MISPLACED_TARGET = "JSL0023": "`target` is allowed only on properties of a chunk, step or partition";
    STEP_BODY = "JSL0024": "a step contains exactly one of chunk and batchlet";
    CHECKPOINT_ALGORITHM = "JSL0025": "a checkpoint algorithm requires the policy `custom`, and the policy requires an algorithm";
    NEXT_TWICE = "JSL0026": "a step cannot have both a `next` attribute and `next` elements";
    BAD_TARGET = "JSL0027": "a transition or restart names an element that cannot be its target";
    TRANSITION_CYCLE = "JSL0028": "`next` attributes lead back to where they started";
    EMPTY_JOB = "JSL0029": "a job contains no step, flow or split, or only abstract ones";
    ABSTRACT_JOB = "JSL0030": "an abstract job serves only as a parent and cannot be started";
    MISSING_PART = "JSL0031": "a chunk lacks its reader or writer, or a partition its plan or mapper";
    NOT_A_JOB = "JSL0032": "a document whose root is a step, flow or split cannot be started";
    UNKNOWN_PARENT = "JSL0033": "`parent` names an element that does not exist in the job or on the job path";
    PARENT_KIND = "JSL0034": "an element inherits only from one of the same kind";
    AMBIGUOUS_PARENT = "JSL0035": "several documents have the id that `parent` names";
    INHERITANCE_CYCLE = "JSL0036": "an element inherits from itself";
    INHERITANCE_LIMIT = "JSL0037": "inheritance exceeds a limit: generations, elements or bytes";
    INCOMPLETE_PARENT = "JSL0038": "a parent that lacks something required is not marked abstract";
    LEADING_DECISION = "JSL0039": "the first element of a job or flow is a decision, which has nothing to decide on";
    MALFORMED_SYMBOL = "JSL0040": "`${` or `#{` starts a symbol or expression that is not complete";
    UNRESOLVED_SYMBOL = "JSL0041": "no job parameter, system property or enclosing property has this name";
    SYMBOL_CYCLE = "JSL0042": "the value of a symbol depends on itself";
    SUBSTITUTION_LIMIT = "JSL0043": "substitution exceeds a limit: bytes or number of symbols";
    LITERAL_ONLY = "JSL0044": "ids of documents, `parent`, and `merge` of a list that inherits cannot contain symbols";
    EMPTY_CONTAINER = "JSL0045": "a flow contains no step, or a split no flow, that is not abstract";
    DECIDER_TWICE = "JSL0046": "a decision names its decider by both `decider` and `ref`";
    PARTITION_NUMBER = "JSL0047": "a property is for a partition that does not exist, or does not name its partition";
    SPLIT_TARGET = "JSL0048": "a flow of a split follows more than one other element, or, in Jakarta Batch, any";
    PARTITION_ID = "JSL0049": "`X:n` is the name of partition n of the element `X` in the job repository, and cannot be an id";
    RECORD_POLICY = "JSL0050": "the checkpoint policy `record` is an obsolete name of `item`";
    UNREACHABLE = "JSL0051": "no transition leads to the element, so it never runs";
    XML_VERSION = "JSL0052": "the document is read by the rules of XML 1.0";
    SHADOWED = "JSL0053": "a transition is never taken, because another one always precedes it";
    REPEATED = "JSL0054": "a transition leads to an element that has always run before, and elements run once";
    TARGET_WITHOUT_CHUNK = "JSL0055": "`target` names an artifact of a chunk, but the step contains a batchlet";
    LIMIT_WITHOUT_CLASSES = "JSL0056": "`skip-limit` or `retry-limit` limits nothing, because no exception class is included";
    OTHER_SYNTAX = "JSL0057": "the syntax of the other dialect, `#{..}` or `${..}`, is literal text";
    UNDEFINED_VALUE = "JSL0058": "an expression names a value that nothing defines, so it is empty";
    TWO_CLASSES = "JSL0060": "batch.xml maps one artifact id to two classes";
    TWO_LOADERS = "JSL0061": "the batch.xml files of one program name two preferred loaders";
    NO_ENTRIES = "JSL0062": "a batch.xml contains neither a loader nor an artifact";
}

/// Returns the explanation of a code in one line; `None` for an unknown code.
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
