//! Questions: nothing is changed.

mod explain;
mod flows;
mod health;
mod report;
