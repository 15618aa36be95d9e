"""`msadapter.pytorch`: another name of the tree that msadapter_hook serves as `torch`; see msadapter_hook.hook.aliases."""

from msadapter_hook.hook.aliases import serve as _serve

_serve()
