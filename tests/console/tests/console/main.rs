//! The operations console: requests of all kinds, and a real browser that does what people on call do.
#![allow(clippy::unwrap_used)]

mod access;
mod api;
mod browser;
mod details;
mod foreign;
mod forms;
mod live;
mod load;
mod mounted;
mod operations;
mod outage;
mod overview;
mod owners;
mod pages;
mod program;
mod scripts_off;
