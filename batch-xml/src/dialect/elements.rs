//! Element tables: the attributes and children that an element may have, and those that it must have.

/// A row of an element table. The rows of its parents define where the element is allowed.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) attributes: &'static [&'static str],
    /// Children that are allowed at most once.
    pub(crate) once: &'static [&'static str],
    /// Children that are allowed any number of times.
    pub(crate) many: &'static [&'static str],
}

impl Rule {
    pub(crate) fn children(&self) -> impl Iterator<Item = &'static str> {
        self.once.iter().chain(self.many).copied()
    }

    pub(crate) fn allows(&self, child: &str) -> bool {
        self.children().any(|name| name == child)
    }
}

/// Makes a table of rows `"element" ["attribute" ..] once ["child" ..] many ["child" ..];`.
macro_rules! elements {
    ($($name:literal [$($attribute:literal)*] $(once [$($once:literal)*])? $(many [$($many:literal)*])?;)*) => {
        &[$(Rule {
            name: $name,
            attributes: &[$($attribute),*],
            once: &[$($($once),*)?],
            many: &[$($($many),*)?],
        }),*]
    };
}

/// The requirements of a complete element: its attributes, and one of its children.
#[derive(Debug)]
pub(crate) struct Required {
    pub(crate) element: &'static str,
    pub(crate) attributes: &'static [&'static str],
    pub(crate) one_child_of: &'static [&'static str],
}

/// Makes a table of rows `"element" ["attribute" ..] one of ["child" ..];`.
macro_rules! required {
    ($($element:literal [$($attribute:literal)*] $(one of [$($child:literal)*])?;)*) => {
        &[$(Required {
            element: $element,
            attributes: &[$($attribute),*],
            one_child_of: &[$($($child),*)?],
        }),*]
    };
}

pub(crate) use {elements, required};
