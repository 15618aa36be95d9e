"""What is registered: operators by their public names, methods of Tensor, and who looks at calls before they run."""

OPERATORS = {}  # public name ("add", "nn.functional.relu", "linalg.inv") -> Operator
METHODS = {}  # method name of Tensor -> function
PATH = {}  # names whose kernel is a host kernel
PARTS = {}  # name in a schema -> function that makes the operator of others where `__torch_dispatch__` looks on
interceptors = []  # f(operator, overload, bound) -> new bound or None: autocast and the like


def call(name, *args, **kwargs):
    """Call a registered operator by its public name; how operators use each other without importing in circles."""
    return OPERATORS[name].function(*args, **kwargs)


def functions(namespace=""):
    """The public functions of a namespace, by their short names."""
    if not namespace:
        return {name: entry.function for name, entry in OPERATORS.items() if "." not in name}
    start = namespace + "."
    return {name[len(start):]: entry.function for name, entry in OPERATORS.items()
            if name.startswith(start) and "." not in name[len(start):]}
