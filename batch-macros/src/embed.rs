//! `embed_jobs!`: the files of a directory as names and texts.

use std::fs;
use std::io;
use std::path::Path;

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;

use crate::diagnostics::Errors;

/// Expands to the XML files of a directory of the crate, sorted by name, as `&[(&str, &str)]`.
// Spec: EMBED-01
pub(crate) fn jobs(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let files = match syn::parse2::<LitStr>(input) {
        Ok(directory) => files(&directory, &mut errors),
        Err(error) => {
            let message = "expected a directory in quotes\n= help: write `embed_jobs!(\"jobs\")`, relative to the crate's Cargo.toml";
            errors.syntax(syn::Error::new(error.span(), message));
            Vec::new()
        }
    };
    if !errors.is_empty() {
        // A value of the right type, so that there is no second error.
        return quote!({ #errors const NONE: &[(&::core::primitive::str, &::core::primitive::str)] = &[]; NONE });
    }
    // The compiler reads the files, so that a change of one compiles the crate again.
    let files = files
        .iter()
        .map(|(name, path)| quote!((#name, ::core::include_str!(#path))));
    quote!({
        const FILES: &[(&::core::primitive::str, &::core::primitive::str)] = &[#(#files),*];
        FILES
    })
}

/// Returns name and path of each file.
fn files(directory: &LitStr, errors: &mut Errors) -> Vec<(String, String)> {
    let written = directory.value();
    // Cargo sets the variable for each crate; without it, paths are relative to the compiler's current directory.
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    match xml_files(&Path::new(&root).join(&written)) {
        Ok(files) if files.is_empty() => {
            let message = format!("the directory `{written}` contains no file whose name ends with `.xml`");
            errors.error(directory, message, &[]);
            Vec::new()
        }
        Ok(files) => {
            let named = files.into_iter();
            named
                .map(|(file, path)| (format!("{}/{file}", written.trim_end_matches('/')), path))
                .collect()
        }
        Err(error) => {
            let message = format!("cannot read the directory `{written}`: {error}");
            errors.error(
                directory,
                message,
                &[&"the directory is relative to the crate's Cargo.toml"],
            );
            Vec::new()
        }
    }
}

/// Returns name and path of each XML file of a directory, sorted by name.
fn xml_files(directory: &Path) -> io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "xml") {
            continue;
        }
        match (
            entry.file_name().into_string(),
            path.into_os_string().into_string(),
        ) {
            (Ok(name), Ok(path)) => files.push((name, path)),
            (Err(name), _) | (_, Err(name)) => {
                return Err(io::Error::other(format!("{} is not UTF-8", name.display())));
            }
        }
    }
    files.sort();
    Ok(files)
}
