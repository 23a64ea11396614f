//! Artifacts of one expression, for small jobs and for tests.

/// Declares a reader of the items of an iterator. A restart passes over the items that were read. It can be the inner reader of another
/// one: see [`ReadItems`](crate::compose::ReadItems).
///
/// ```
/// batch_items::iterator_reader!(pub Numbers("numbers"): u64 = 1..=100);
/// batch_items::iterator_reader!(Names("names"): String = ["Ada", "Grace"].map(String::from));
/// ```
#[macro_export]
macro_rules! iterator_reader {
    ($(#[$about:meta])* $visibility:vis $type:ident($name:literal): $item:ty = $items:expr) => {
        $(#[$about])*
        #[derive(::batch_runtime::BatchArtifact)]
        $visibility struct $type {
            items: ::core::option::Option<
                ::std::boxed::Box<dyn ::core::iter::Iterator<Item = $item> + ::core::marker::Send>,
            >,
            read: usize,
        }

        #[::batch_runtime::item_reader($name)]
        impl $type {
            #[open]
            fn open(&mut self, checkpoint: ::core::option::Option<usize>) {
                self.read = checkpoint.unwrap_or(0);
                let items = ::core::iter::IntoIterator::into_iter($items);
                self.items = ::core::option::Option::Some(::std::boxed::Box::new(
                    ::core::iter::Iterator::skip(items, self.read),
                ));
            }

            #[read_item]
            fn read(&mut self) -> ::core::option::Option<$item> {
                let item = ::core::iter::Iterator::next(self.items.as_mut()?);
                self.read += usize::from(item.is_some());
                item
            }

            #[get_checkpoint_info]
            fn checkpoint(&self) -> usize {
                self.read
            }
        }

        impl $crate::compose::ReadItems for $type {
            type Item = $item;
            type Position = usize;

            fn open(
                &mut self,
                checkpoint: ::core::option::Option<usize>,
            ) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                $type::open(self, checkpoint);
                ::core::result::Result::Ok(())
            }

            fn read(
                &mut self,
            ) -> ::core::result::Result<::core::option::Option<$item>, ::batch_runtime::BatchError> {
                ::core::result::Result::Ok($type::read(self))
            }

            fn position(&mut self) -> ::core::result::Result<usize, ::batch_runtime::BatchError> {
                ::core::result::Result::Ok($type::checkpoint(self))
            }

            fn place(&self) -> ::core::option::Option<::std::string::String> {
                ::core::option::Option::Some(::std::format!("item {}", self.read))
            }
        }
    };
}

/// Declares a processor of a function. It returns the result, `None` to filter the item, or an error.
///
/// ```
/// batch_items::function_processor!(Double("double"): |number: &u64| -> Option<u64> { Some(number * 2) });
/// batch_items::function_processor!(Parse("parse"): |text: &String| -> Result<Option<u64>, std::num::ParseIntError> {
///     text.parse().map(Some)
/// });
/// ```
#[macro_export]
macro_rules! function_processor {
    ($(#[$about:meta])* $visibility:vis $type:ident($name:literal): |$item:ident: &$input:ty| -> $result:ty $body:block) => {
        $(#[$about])*
        #[derive(::batch_runtime::BatchArtifact)]
        $visibility struct $type;

        #[::batch_runtime::item_processor($name)]
        impl $type {
            #[process_item]
            // An item may be a `Vec`, such as a group.
            #[allow(clippy::ptr_arg)]
            fn process(&mut self, $item: &$input) -> $result $body
        }
    };
}

/// Declares a writer of a function, which gets lists of items. It has no position, so it writes at least once.
///
/// ```
/// batch_items::function_writer!(Print("print"): |numbers: &[u64]| { println!("{numbers:?}") });
/// ```
#[macro_export]
macro_rules! function_writer {
    ($(#[$about:meta])* $visibility:vis $type:ident($name:literal): |$items:ident: &[$item:ty]| $body:block) => {
        $crate::function_writer!($(#[$about])* $visibility $type($name): |$items: &[$item]| -> () { $body });
    };
    ($(#[$about:meta])* $visibility:vis $type:ident($name:literal): |$items:ident: &[$item:ty]| -> $result:ty $body:block) => {
        $(#[$about])*
        #[derive(::batch_runtime::BatchArtifact)]
        $visibility struct $type;

        #[::batch_runtime::item_writer($name)]
        impl $type {
            #[open]
            fn open(&mut self, _checkpoint: ::core::option::Option<()>) {}

            #[write_items]
            fn write(&mut self, $items: &[$item]) -> $result $body

            #[get_checkpoint_info]
            fn checkpoint(&mut self) {}
        }
    };
}

/// Declares how a [`GroupingItemReader`](crate::GroupingItemReader) makes groups: by a `key` of the items, or at each item
/// that is a `header`.
///
/// ```
/// struct OrderLine {
///     order: u64,
///     customer: String,
/// }
///
/// batch_items::group_rule!(ByOrder: key |line: &OrderLine| line.order);
/// batch_items::group_rule!(pub ByCustomer: key |line: &OrderLine| (line.order / 1000, &line.customer));
/// batch_items::group_rule!(AtOrder: header |line: &String| line.starts_with("ORDER"));
/// ```
#[macro_export]
macro_rules! group_rule {
    ($(#[$about:meta])* $visibility:vis $type:ident: key |$item:ident: &$ty:ty| $key:expr) => {
        $crate::group_rule!(@declare [$(#[$about])* $visibility] $type, $ty, |previous, item| match previous {
            ::core::option::Option::Some($item) => {
                let previous = $key;
                let $item = item;
                match previous == $key {
                    true => $crate::compose::GroupPart::Detail,
                    false => $crate::compose::GroupPart::First,
                }
            }
            ::core::option::Option::None => $crate::compose::GroupPart::First,
        });
    };
    ($(#[$about:meta])* $visibility:vis $type:ident: header |$item:ident: &$ty:ty| $is_header:expr) => {
        $crate::group_rule!(@declare [$(#[$about])* $visibility] $type, $ty, |_previous, item| {
            let $item = item;
            match $is_header {
                true => $crate::compose::GroupPart::Header,
                false => $crate::compose::GroupPart::Detail,
            }
        });
    };
    (@declare [$($declaration:tt)*] $type:ident, $ty:ty, |$previous:ident, $next:ident| $part:expr) => {
        #[derive(::batch_runtime::BatchArtifact)]
        $($declaration)* struct $type;

        impl $crate::compose::GroupRule<$ty> for $type {
            fn part(
                &self,
                $previous: ::core::option::Option<&$ty>,
                $next: &$ty,
            ) -> ::core::result::Result<$crate::compose::GroupPart, ::batch_runtime::BatchError> {
                ::core::result::Result::Ok($part)
            }
        }
    };
}
