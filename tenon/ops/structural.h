// Regions and control flow.
#pragma once
#include "tenon/rules/call.h"

namespace tenon {

extern Handle grad_region;        // runs a graph with gradients on or off
extern Handle called_region;      // runs a graph: graph, name, operands one by one
extern Handle packed_region;      // likewise: graph, operands one by one, what says nothing of the result
extern Handle hinted_region;      // likewise: graph, list of operands, what says nothing of the result
extern Handle strict_region;      // likewise: graph, list of operands
extern Handle associative_scan;   // graph of two elements, scanned, captured
extern Handle map_rows;           // runs a graph on each row of some tensors, stacks what it gives
extern Handle scan_rows;          // likewise, one row after another, with values that are carried on
extern Handle repeat_stacked;     // runs a graph while a condition holds, stacks what it carries
extern Handle effectful_call;     // calls an operator in its turn: token, operator, arguments; gives the next token too
extern Handle functionalized;     // calls an operator on copies of what it writes: operator, arguments by name
extern Handle functionalized_v2;  // likewise, the copies being of whole tensors, arguments views of them
extern Handle typed_call;   // calls an operator on arguments of the dtype of its result: operator, dtype, arguments
extern Handle batch_entry;  // what one sample of a batch is: tensor, dimension, level
extern Handle batch_exit;   // the samples as a batch again: tensor, level, size, dimension
extern Handle batch_begin, batch_end, batch_setup;  // mark where such a batch is, and say nothing more
extern Handle dual_entry, dual_entry_aten;          // a tensor with the direction it moves in: tensor, tangent, level
extern Handle dual_exit, dual_exit_aten;            // both of them again: tensor, level
extern Handle unwrapped_for_grad;                   // the tensor it is given
extern Handle level_begin, level_end, dual_begin, dual_end;  // mark where such tensors are
extern Handle assert_async;                                  // fails with a message where its one element is 0

}  // namespace tenon
