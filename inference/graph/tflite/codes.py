"""The numbers of a .tflite file: its operators, its types, and the fields of an operator's options.

Source: `schema.fbs` of TensorFlow Lite.
"""

from __future__ import annotations

IDENTIFIER = b"TFL3"
VERSION = 3

_OPERATORS = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP
    FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
    LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX
    SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD
    UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
    UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX
    DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER
    GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL
    NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT
    LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE
    RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2
    ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND
    HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY
    SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D
    IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
    CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL
    BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD
    UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR
    RIGHT_SHIFT
"""
_TYPES = """
    FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64 COMPLEX128 UINT64 RESOURCE
    VARIANT UINT32 UINT16 INT4 BFLOAT16
"""

OPERATORS = tuple(_OPERATORS.split())
"""By their number in the file."""
TYPES = tuple(_TYPES.split())
"""By their number in the file."""
CUSTOM = OPERATORS.index("CUSTOM")

Fields = dict[str, tuple[int, str, float]]
_ACTIVATED: Fields = {"activation": (0, "b", 0)}
_WINDOW: Fields = {"padding": (0, "b", 0), "stride_w": (1, "i", 0), "stride_h": (2, "i", 0)}
_POOL: Fields = {**_WINDOW, "filter_w": (3, "i", 0), "filter_h": (4, "i", 0), "activation": (5, "b", 0)}
_REDUCTION: Fields = {"keep_dims": (0, "?", False)}
_BLOCK: Fields = {"block_size": (0, "i", 0)}

OPTIONS: dict[str, Fields] = {
    "CONV_2D": {
        **_WINDOW,
        "activation": (3, "b", 0),
        "dilation_w": (4, "i", 1),
        "dilation_h": (5, "i", 1),
    },
    "DEPTHWISE_CONV_2D": {
        **_WINDOW,
        "activation": (4, "b", 0),
        "dilation_w": (5, "i", 1),
        "dilation_h": (6, "i", 1),
    },
    "TRANSPOSE_CONV": {**_WINDOW, "activation": (3, "b", 0)},
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "FULLY_CONNECTED": {
        **_ACTIVATED,
        "format": (1, "b", 0),
        "keep_dims": (2, "?", False),
        "asymmetric": (3, "?", False),
    },
    "BATCH_MATMUL": {"adj_x": (0, "?", False), "adj_y": (1, "?", False)},
    "ADD": _ACTIVATED,
    "SUB": _ACTIVATED,
    "MUL": _ACTIVATED,
    "DIV": _ACTIVATED,
    "L2_NORMALIZATION": _ACTIVATED,
    "CONCATENATION": {"axis": (0, "i", 0), "activation": (1, "b", 0)},
    "PACK": {"axis": (1, "i", 0)},
    "UNPACK": {"axis": (1, "i", 0)},
    "GATHER": {"axis": (0, "i", 0), "batch_dims": (1, "i", 0)},
    "SOFTMAX": {"beta": (0, "f", 0.0)},
    "LEAKY_RELU": {"alpha": (0, "f", 0.0)},
    "GELU": {"approximate": (0, "?", False)},
    "MIRROR_PAD": {"mode": (0, "b", 0)},
    "SPACE_TO_DEPTH": _BLOCK,
    "DEPTH_TO_SPACE": _BLOCK,
    "RESIZE_BILINEAR": {"align_corners": (2, "?", False), "half_pixel": (3, "?", False)},
    "RESIZE_NEAREST_NEIGHBOR": {"align_corners": (0, "?", False), "half_pixel": (1, "?", False)},
    "STRIDED_SLICE": {
        "begin_mask": (0, "i", 0),
        "end_mask": (1, "i", 0),
        "ellipsis_mask": (2, "i", 0),
        "new_axis_mask": (3, "i", 0),
        "shrink_axis_mask": (4, "i", 0),
        "offset": (5, "?", False),
    },
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {**_ACTIVATED, "cell_clip": (1, "f", 0.0), "time_major": (3, "?", False)},
    "CALL_ONCE": {"subgraph": (0, "i", 0)},
    "MEAN": _REDUCTION,
    "SUM": _REDUCTION,
    "REDUCE_PROD": _REDUCTION,
    "REDUCE_MAX": _REDUCTION,
    "REDUCE_MIN": _REDUCTION,
    "REDUCE_ANY": _REDUCTION,
    "REDUCE_ALL": _REDUCTION,
    "RESHAPE": {},
    "SQUEEZE": {},
    "VAR_HANDLE": {},
}
"""Of each operator, the fields of its options that are read: number, code in `struct`, default."""
