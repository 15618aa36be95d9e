"""torch._dynamo.exc: the errors of the compiler, for `except` clauses."""


class TorchDynamoException(RuntimeError):
    """The base of them."""


class Unsupported(TorchDynamoException):
    """Source that the compiler does not take."""


class BackendCompilerFailed(TorchDynamoException):
    """A failure of a backend."""


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """Internal to the compiler."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """Too many recompilations."""


class UserError(TorchDynamoException):
    """A misuse."""
