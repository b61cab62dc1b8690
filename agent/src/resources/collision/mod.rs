//! What an attachment may not share with another one, with the node or with a neighbour: decides, and changes nothing of theirs.

mod occupied;
mod taken;
