"""tiny models of 27 architectures: loss and sum of gradients; GPT-2 generates"""

import torch
import transformers

transformers.logging.set_verbosity_error()
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 50,
         "max_position_embeddings": 64}
SEQUENCE = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
            "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "decoder_start_token_id": 1, "pad_token_id": 0, "bos_token_id": 1,
            "eos_token_id": 2}
IMAGE = {"image_size": 32, "patch_size": 8}
IDS = torch.arange(10).view(1, 10) % 7 + 3
PIXELS = torch.linspace(-1, 1, 3 * 32 * 32).view(1, 3, 32, 32)


def show(name, model, config, inputs, **options):
    torch.manual_seed(0)
    module = getattr(transformers, model)(getattr(transformers, config)(**options)).eval()
    out = module(**inputs)
    loss = getattr(out, "loss", None)
    loss = (out.logits if loss is None else loss).float().pow(2).mean()
    loss.backward()
    gradient = sum(p.grad.abs().sum().item() for p in module.parameters() if p.grad is not None)
    print(f"{name}: {loss.item():.6g} {gradient:.5g}")


text, labelled = {"input_ids": IDS, "labels": IDS}, {"pixel_values": PIXELS}
for name, kind, options in (
    ("llama", "Llama", {"num_key_value_heads": 1}),
    ("mistral", "Mistral", {"num_key_value_heads": 1, "sliding_window": 4}),
    ("qwen2", "Qwen2", {"num_key_value_heads": 1}),
    ("gemma", "Gemma", {"num_key_value_heads": 1, "head_dim": 16}),
    ("phi", "Phi", {}),
    ("mixtral", "Mixtral", {"num_key_value_heads": 1, "num_local_experts": 2}),
    ("gpt-neox", "GPTNeoX", {}),
):
    show(name, f"{kind}ForCausalLM", f"{kind}Config", text, **SMALL, **options)
for name, kind, options in (
    ("bert", "Bert", {}),
    ("roberta", "Roberta", {"pad_token_id": 1}),
    ("albert", "Albert", {"embedding_size": 16}),
    ("electra", "Electra", {"embedding_size": 16}),
    ("deberta", "DebertaV2", {"relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]}),
):
    show(name, f"{kind}ForMaskedLM", f"{kind}Config", text, **SMALL, **options)
show("distilbert", "DistilBertForMaskedLM", "DistilBertConfig", text, dim=32, n_layers=2, n_heads=2, hidden_dim=64, vocab_size=50)
show("gpt2", "GPT2LMHeadModel", "GPT2Config", text, n_embd=32, n_layer=2, n_head=2, vocab_size=50)
show("bloom", "BloomForCausalLM", "BloomConfig", text, hidden_size=32, n_layer=2, n_head=2, vocab_size=50)
show("mamba", "MambaForCausalLM", "MambaConfig", text, hidden_size=32, num_hidden_layers=1, vocab_size=50, state_size=4)
show("opt", "OPTForCausalLM", "OPTConfig", text, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=64, vocab_size=50,
     max_position_embeddings=64, word_embed_proj_dim=32)
show("t5", "T5ForConditionalGeneration", "T5Config", text, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=2, vocab_size=50,
     decoder_start_token_id=0)
show("bart", "BartForConditionalGeneration", "BartConfig", text, **SEQUENCE, vocab_size=50, max_position_embeddings=64)
show("vit", "ViTForImageClassification", "ViTConfig", labelled, **SMALL, **IMAGE)
show("deit", "DeiTForImageClassification", "DeiTConfig", labelled, **SMALL, **IMAGE)
show("beit", "BeitForImageClassification", "BeitConfig", labelled, **SMALL, **IMAGE)
show("swin", "SwinForImageClassification", "SwinConfig", labelled, image_size=32, patch_size=4, embed_dim=16, depths=[1, 1],
     num_heads=[2, 2], window_size=4)
show("convnext", "ConvNextForImageClassification", "ConvNextConfig", labelled, hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
show("resnet", "ResNetForImageClassification", "ResNetConfig", labelled, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1],
     layer_type="basic")
show("whisper", "WhisperForConditionalGeneration", "WhisperConfig",
     {"input_features": torch.linspace(-1, 1, 8 * 40).view(1, 8, 40), "labels": IDS}, **SEQUENCE, vocab_size=60, num_mel_bins=8,
     max_source_positions=20, max_target_positions=20)
show("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", {"input_values": torch.linspace(-1, 1, 400).sin().view(1, 400)}, hidden_size=32,
     num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=20, conv_dim=[8, 8], conv_stride=[5, 2],
     conv_kernel=[10, 3], num_feat_extract_layers=2, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2)

torch.manual_seed(0)
writer = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=50, n_positions=32)).eval()
print("greedy:", writer.generate(IDS[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=0).tolist())
torch.manual_seed(1)
print("sampled:", writer.generate(IDS[:, :4], max_new_tokens=6, do_sample=True, top_k=10, pad_token_id=0).tolist())
print("beams:", writer.generate(IDS[:, :4], max_new_tokens=6, num_beams=3, pad_token_id=0).tolist())
