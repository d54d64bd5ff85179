//! Real files and real processes.

mod commands;
mod texts;
