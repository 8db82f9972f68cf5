"""Hand-written calls of the operators that models contain, where PyTorch's own samples show too little."""

import torch

from samples import calls
from samples_of_elements import arithmetic, conversions, in_place, reductions
from samples_of_layers import activations, attention, convolutions, experts, losses_and_products, norms, pools_and_resizing
from samples_of_matrices import factorizations, spectra
from samples_of_quantization import channels_tokens_and_groups, executorch, hashes, observed, packed, simulated, torchao, whole_tensors
from samples_of_rest import numbers_in_place_of_tensors, other_names, recurrent, spelled_otherwise
from samples_of_sets import bags, counts, distances, histograms, slopes_and_segments, smoothed
from samples_of_shapes import factories, indexing, joining, others, views
from samples_of_vision import detection, products_and_norms, windows_and_ranges


def samples():
    torch.manual_seed(7)
    calls.clear()
    for part in (convolutions, norms, attention, indexing, pools_and_resizing, arithmetic, in_place, conversions, reductions,
                 views, factories, joining, activations, losses_and_products, others, other_names, numbers_in_place_of_tensors,
                 spelled_otherwise, recurrent, counts, histograms, bags, distances, smoothed, slopes_and_segments, factorizations,
                 spectra, whole_tensors, channels_tokens_and_groups, simulated, observed, packed, hashes, torchao, executorch, experts,
                 detection, windows_and_ranges, products_and_norms):
        part()
    return list(calls)
