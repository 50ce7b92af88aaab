#include "plan/run_words.h"

#include <algorithm>

#include "base/ascii.h"

namespace fourpiles {
namespace {

constexpr std::string_view kNoAdapter = "LLaMA-Adapter is not among the adapters here";
constexpr std::string_view kNoSimpleFsdp = "SimpleFSDP is not described";
constexpr std::string_view kNoRocm = "PyTorch's allocator on ROCm is not described";
constexpr std::string_view kNoAsyncTp =
    "the buffers of symmetric memory that asynchronous tensor parallelism has are not described";
constexpr std::string_view kNoAbs =
    "a policy that keeps the magnitudes of gathered weights is not described";
constexpr std::string_view kNoThunder = "thunder's compiler is not described";
constexpr std::string_view kUnknownRecompute = "whether layers run again is not known";

constexpr std::string_view kNoFp8Gather = "weights that are gathered in float8 are not described";
constexpr std::string_view kNoModules = "modules that run again for themselves are not described";
constexpr std::string_view kNoLayout = "a pipeline whose stages are written out is not described";
constexpr std::string_view kNoLimit =
    "how many layers are gathered at a time without a limit is not known";

constexpr RunWord kWords[] = {
    // Whose program it was.
    {"source", "lightning-ai/litgpt",
     "implementation=litgpt @rank=8 @targets=q_proj+v_proj @dropout=0.05"},
    {"source", "pytorch/torchtune",
     "implementation=torchtune optimizer-kernels=fused @rank=64 "
     "@targets=q_proj+v_proj+o_proj+gate_proj+up_proj+down_proj"},
    // torchtitan, by the day of the run: the benchmarks of H100 in torchao's pages are of its
    // version 0.0.2, those of B200 of August 2025; PR 1881 is of October 2025. It divides by 2^30
    // (components/metrics.py, DeviceMemoryMonitor).
    {"source", "training.md h100",
     "implementation=torchtitan-2024 expandable-segments=yes @unit=GiB"},
    {"source", "training.md mi300x", "", kNoRocm},
    {"source", "training.md b200",
     "implementation=torchtitan expandable-segments=yes optimizer-kernels=fused @unit=GiB"},
    {"source", "torchtitan commit d9bdfbb20",
     "implementation=torchtitan expandable-segments=yes optimizer-kernels=fused"},
    {"source", "torchtitan benchmarks/llama3-8b_h200_202506",
     "implementation=torchtitan expandable-segments=yes optimizer-kernels=fused"},
    {"source", "pytorch/torchtitan", "implementation=torchtitan-2024 expandable-segments=yes"},
    {"source", "pytorch/ao", "implementation=torchtune"},
    {"source", "llm.c", "implementation=llm.c"},
    {"source", "huggingface/transformers", "implementation=pytorch @unit=MiB"},
    {"source", "huggingface/peft", "implementation=pytorch @targets=q_proj+v_proj"},
    {"source", "huggingface/", "implementation=pytorch"},
    {"source", "qwenlm/qwen", "implementation=pytorch"},
    // Samples that pass max_length are left out (swift/llm/utils/argument.py, truncation_strategy).
    {"source", "modelscope/ms-swift", "implementation=pytorch @excess=drop"},
    {"source", "nvidia/megatron-lm", "implementation=megatron @bf16=megatron-bf16"},
    {"source", "answerdotai/fsdp_qlora", "implementation=pytorch @rank=64"},
    {"source", "galore", "implementation=pytorch"},
    {"source", "linkedin/liger-kernel", "implementation=pytorch"},

    {"mode", "pretrain", "@command=train"},
    {"mode", "full-ft", "@command=train"},
    {"mode", "train", "@command=train"},
    {"mode", "weights only", "@command=train"},
    {"mode", "lora", "@adapter=lora"},
    {"mode", "qlora", "@adapter=lora"},
    {"mode", "lora+embeddings", "@adapter=lora @modules=embed_tokens+lm_head"},
    {"mode", "dora", "@adapter=dora"},
    {"mode", "vera", "@adapter=vera"},
    {"mode", "ia3", "@adapter=ia3"},
    {"mode", "ln_tuning", "@adapter=ln"},
    {"mode", "prompt-tuning", "@adapter=prompt"},
    {"mode", "adapter", "", kNoAdapter},
    {"mode", "adapter_v2", "", kNoAdapter},
    {"mode", "pretrain galore 8-bit per-layer", "", "GaLore with 8-bit states is not described"},

    {"precision", "bf16-true", "recipe=bf16"},
    {"precision", "bf16-true+bnb.nf4", "recipe=bf16 base-format=nf4"},
    {"precision", "bf16-true+nf4", "recipe=bf16 base-format=nf4"},
    {"precision", "bf16-true+bnb.nf4-dq", "recipe=bf16 base-format=nf4-double"},
    {"precision", "bf16-true+nf4-dq", "recipe=bf16 base-format=nf4-double"},
    {"precision", "bf16-mixed", "recipe=amp-bf16"},
    {"precision", "pure bf16", "recipe=bf16"},
    {"precision", "bf16", "recipe=bf16"},
    {"precision", "fp8", "recipe=fp8-te"},
    {"precision", "fsdp2 mixed: fp32 master/grad reduce, bf16 compute", "recipe=fsdp-mixed"},
    {"precision", "bf16 amp", "recipe=amp-bf16"},
    {"precision", "bf16 + fp32 master", "recipe=mixed-bf16"},
    {"precision", "bf16 + torchao nf4", "recipe=bf16 base-format=nf4-double"},
    {"precision", "bf16 + nf4", "recipe=bf16 base-format=nf4-double"},
    {"precision", "bf16 nf4", "recipe=bf16 base-format=nf4-double"},
    {"precision", "pure bf16 + nf4", "recipe=bf16 base-format=nf4"},
    {"precision", "fp32", "recipe=fp32"},
    {"precision", "fp16", "recipe=fp16"},
    {"precision", "fp16 amp", "recipe=amp-fp16"},
    {"precision", "fp16 mixed", "recipe=amp-fp16"},
    {"precision", "gptq-int8", "recipe=bf16 base-format=gptq:8:128"},
    {"precision", "gptq-int4", "recipe=bf16 base-format=gptq:4:128"},
    {"precision", "bnb-int4", "recipe=bf16 base-format=nf4"},
    {"precision", "fp16 + gptq int4", "recipe=fp16 base-format=gptq:4:128"},

    {"optimizer", "adamw", "optimizer=adamw"},
    {"optimizer", "adam", "optimizer=adam"},
    {"optimizer", "adamw_torch", "optimizer=adamw"},
    {"optimizer", "adamw bf16 states", "optimizer=adamw @states=bfloat16"},
    {"optimizer", "adamw fp32", "optimizer=adamw"},
    {"optimizer", "adamw fp32 states", "optimizer=adamw @states=float32"},
    {"optimizer", "adamw (hf)", "optimizer=adamw optimizer-kernels=loop"},
    {"optimizer", "adamw (hf) fp32", "optimizer=adamw optimizer-kernels=loop"},
    {"optimizer", "adamw fused", "optimizer=adamw optimizer-kernels=fused"},
    {"optimizer", "torch fused adamw", "optimizer=adamw optimizer-kernels=fused"},
    {"optimizer", "bnb pagedadamw", "optimizer=paged-adamw"},
    {"optimizer", "pagedadamw", "optimizer=paged-adamw"},
    {"optimizer", "adamw8bit", "optimizer=adamw-8bit-torchao"},
    {"optimizer", "bnb adamw8bit", "optimizer=adamw-8bit-bnb"},
    {"optimizer", "bnb adam8bit", "optimizer=adamw-8bit-bnb"},
    {"optimizer", "ao adamw8bit", "optimizer=adamw-8bit-torchao"},
    {"optimizer", "ao adamw4bit", "optimizer=adamw-4bit-torchao"},
    {"optimizer", "ao adamwfp8", "optimizer=adamw-fp8-torchao"},
    {"optimizer", "adafactor", "optimizer=adafactor"},
    {"optimizer", "sgd", "optimizer=sgd"},
    {"optimizer", "sgd momentum", "optimizer=sgd-momentum"},
    {"optimizer", "none", "optimizer=sgd"},
    {"optimizer", "none yet", "optimizer=sgd"},

    // A count, "{}", is the member's of `parallel`; "@spread" that of its data-parallel ranks.
    {"parallel", "dp", "@spread={}"},
    {"parallel", "ddp", "@spread={}"},
    {"parallel", "strategy=single", ""},
    {"parallel", "strategy=ddp", ""},
    {"parallel", "strategy=fsdp zero3", "fsdp=full"},
    {"parallel", "zero1", "zero=1 @spread={}"},
    {"parallel", "zero2", "zero=2 @spread={} @deepspeed=yes"},
    {"parallel", "zero3", "zero=3 @spread={} @deepspeed=yes"},
    {"parallel", "fsdp1", "fsdp=full @flat=yes @spread={}"},
    {"parallel", "fsdp1_full_shard", "fsdp=full @flat=yes @spread={}"},
    {"parallel", "fsdp2", "fsdp=full @spread={}"},
    {"parallel", "reshard_after_forward=default", ""},
    {"parallel", "reshard_after_forward=always", "fsdp=full:always"},
    {"parallel", "reshard_after_forward=never", "fsdp=full:keep"},
    {"parallel", "simplefsdp", "", kNoSimpleFsdp},
    // torchtitan cuts tokens between the cut layers wherever it cuts layers (parallelize_llama.py).
    {"parallel", "tp", "tensor-parallel={} sequence-parallel=yes"},
    {"parallel", "sp=true", "sequence-parallel=yes"},
    {"parallel", "async_tp=true", "", kNoAsyncTp},
    {"parallel", "cp", "context-parallel={}"},
    {"parallel", "pp", "pipeline-parallel={}"},
    {"parallel", "cpu_offload=true", "offload=parameters"},
    {"parallel", "limit_all_gathers=true", ""},
    {"parallel", "limit_all_gathers=false", "", kNoLimit},
    {"parallel", "tensor-model-parallel-size", "tensor-parallel={}"},
    {"parallel", "pipeline-model-parallel-size", "pipeline-parallel={}"},
    {"parallel", "context-parallel-size", "context-parallel={}"},
    {"parallel", "expert-model-parallel-size", "expert-parallel={}"},
    {"parallel", "expert-tensor-parallel-size", "expert-tensor-parallel={}"},
    {"parallel", "num-layers-per-virtual-pipeline-stage", "@layers-per-chunk={}"},
    {"parallel", "num-virtual-stages-per-pipeline-rank", "virtual-pipeline={}"},
    {"parallel", "decoder-first-pipeline-num-layers", "first-stage-layers={}"},
    {"parallel", "decoder-last-pipeline-num-layers", "last-stage-layers={}"},
    {"parallel", "pipeline-model-parallel-layout", "", kNoLayout},
    {"parallel", "sequence-parallel=true", "sequence-parallel=yes"},
    {"parallel", "use-distributed-optimizer=true", "zero=1"},
    {"parallel", "overlap-grad-reduce=true", ""},
    {"parallel", "overlap-param-gather=true", ""},

    {"recompute", "none", ""},
    {"recompute", "full", "recompute=full"},
    {"recompute", "full per block", "recompute=full"},
    {"recompute", "selective op", "recompute=selective-op"},
    {"recompute", "selective op + abs saved", "", kNoAbs},
    {"recompute", "full + offload", "recompute=full offload=activations"},
    {"recompute", "gelu", "@program=llm.c"},
    {"recompute", "none (recompute=0)", "implementation=llm.c-r0"},
    {"recompute", "recompute-granularity=full", "recompute=full"},
    {"recompute", "recompute-method=uniform", ""},
    {"recompute", "recompute-num-layers", "@every={}"},
    {"recompute", "recompute-granularity=selective", "recompute=selective"},
    {"recompute", "recompute-modules=[core_attn]", ""},
    {"recompute", "recompute-modules", "", kNoModules},
    {"recompute", "unknown", "", kUnknownRecompute},

    {"attention", "auto", "@attention=auto"},
    {"attention", "unfused", "attention=eager"},
    {"attention", "fused", "attention=sdpa"},
    {"attention", "sdpa flash", ""},
    {"attention", "sdpa", ""},
    {"attention", "cudnn flash", ""},
    {"attention", "flash2", "attention=flash"},
    {"attention", "flash", "attention=flash"},
    {"attention", "eager", "attention=eager"},
    {"attention", "unknown", ""},
    {"attention", "n/a", ""},

    {"special", "transformer-impl", ""},
    {"special", "deterministic-mode", "@deterministic=yes"},
    {"special", "no-gradient-accumulation-fusion", "@fusion=no"},
    {"special", "moe-permute-fusion", ""},
    // Which one is not said; that of Megatron-LM itself, its default, has the tensors of the plain.
    {"special", "cross-entropy-loss-fusion", ""},
    {"special", "cross-entropy-fusion-impl", ""},
    {"special", "fp8-param-gather", "", kNoFp8Gather},
    {"special", "packed", ""},
    {"special", "packed 4096", ""},
    {"special", "compile", "@compile=yes"},
    // torchao's float8 linear layers keep input and weight as they came (float8_linear.py,
    // matmul_with_hp_or_float8_args), and so do its MX layers (mx_linear.py).
    {"special", "float8", "recipe=torchao-float8"},
    {"special", "float8 tensorwise", "recipe=torchao-float8"},
    {"special", "float8 rowwise", "recipe=torchao-float8"},
    {"special", "float8 all-gather", "recipe=torchao-float8"},
    {"special", "float8 tensorwise fp8 all-gather", "recipe=torchao-float8"},
    {"special", "fp8 all-gather", ""},
    {"special", "fp8-tensorwise", "recipe=torchao-float8"},
    {"special", "fp8-rowwise", "recipe=torchao-float8"},
    {"special", "fp8-rowwise-gwhp", "recipe=torchao-float8"},
    {"special", "mxfp8-cublas", "recipe=torchao-float8"},
    {"special", "force_recompute_fp8_weight_in_bwd", ""},
    {"special", "nn.rmsnorm", ""},
    {"special", "optimizer_in_bwd", "optimizer-kernels=in-backward"},
    {"special", "offload", "offload=activations"},
    {"special", "adamw8bit", ""},
    {"special", "lm_head chunked 128", "@program=litgpt"},
    {"special", "chunked cross-entropy 128", "@program=litgpt"},
    {"special", "chunked cross-entropy", "@program=litgpt"},
    {"special", "fabric casts logits to fp32", "@program=litgpt"},
    {"special", "batch 4 length-bucketed", ""},
    {"special", "empty_cache every 10 steps", ""},
    {"special", "thunder torchcompile", "", kNoThunder},
    {"special", "thunder nvfuser", "", kNoThunder},

    {"device_type", "a100-sxm4-40gb", "device=a100-40gb"},
    {"device_type", "a100-40gb", "device=a100-40gb"},
    {"device_type", "40gb class", "device=a100-40gb"},
    {"device_type", "a100", "device=a100-sxm-80gb"},
    {"device_type", "a100-80gb", "device=a100-sxm-80gb"},
    {"device_type", "a800-80gb", "device=a100-sxm-80gb"},
    {"device_type", "a10g-24gb", "device=a10-24gb"},
    {"device_type", "h100", "device=h100-sxm-80gb"},
    {"device_type", "h100-80gb", "device=h100-sxm-80gb"},
    {"device_type", "h100-96gb", "device=gh200-96gb"},
    {"device_type", "h200", "device=h200-sxm-141gb"},
    {"device_type", "gb200", "device=gb200-192gb"},
    {"device_type", "b200", "device=b200-180gb"},
    {"device_type", "l40s", "device=l40s-48gb"},
    {"device_type", "v100", "device=v100-32gb"},
    {"device_type", "v100-sxm2-16gb", "device=v100-sxm2-16gb"},
    {"device_type", "t4-16gb", "device=t4-16gb"},
    {"device_type", "rtx4070tis-16gb", "device=rtx-4070-ti-super-16gb"},
    {"device_type", "rtx4090", "device=rtx-4090-24gb"},
    {"device_type", "rtx4090-24gb", "device=rtx-4090-24gb"},
    {"device_type", "2x rtx3090", "device=rtx-3090-24gb"},
    {"device_type", "2x rtx4090", "device=rtx-4090-24gb"},
    {"device_type", "rtx3090", "device=rtx-3090-24gb"},
    {"device_type", "titanrtx-24gb", "device=rtx-3090-24gb"},
    {"device_type", "unknown 24gb+", "device=rtx-4090-24gb"},

    // Phrases of the notes, those that hold others first.
    {"notes", "peak in step 1", "first-step=yes"},
    {"notes", "q,v,o + all mlp", "@targets=q_proj+v_proj+o_proj+gate_proj+up_proj+down_proj"},
    {"notes", "for q and v", "@targets=q_proj+v_proj"},
    {"notes", "targets=qv", "@targets=q_proj+v_proj"},
    {"notes", "targets q,v ", "@targets=q_proj+v_proj"},
    {"notes", " q,v", "@targets=q_proj+v_proj"},
    {"notes", "targets=all+head", "@targets=all-linear+lm_head"},
    {"notes", "all linear incl. head", "@targets=all-linear+lm_head"},
    {"notes", "targets all+output", "@targets=all-linear+lm_head"},
    {"notes", "on k,q,v,up,down,gate",
     "@targets=*k_proj+*q_proj+*v_proj+*up_proj+*down_proj+*gate_proj"},
    {"notes", "gate,up,down", "@targets=gate_proj+up_proj+down_proj"},
    {"notes", "on c_attn,c_proj,w1,w2", "@targets=all-linear"},
    {"notes", "default (c_attn)", "@targets=q_proj+k_proj+v_proj"},
    {"notes", "c_attn;", "@targets=q_proj+k_proj+v_proj"},
    {"notes", "all linear;", "@targets=all-linear"},

    // The version of PyTorch.
    {"version", "torch ~1.10", "implementation=pytorch-1"},
    {"version", "torch 2.1.1", "implementation=pytorch-2.1"},

    {"batches", "first batch is the longest", "later-batches=shorter"},
    {"batches", "first batch is forced to hold the longest sample", "later-batches=shorter"},

    {"sum", "sum over 2 gpus", "@sum=yes"},
    {"sum", "sum over 4 gpus", "@sum=yes"},

    // What the unit stands for.
    {"unit", "mb = mib", "@unit=MiB"},
    {"unit", "nvml used//1024**2", "@unit=MiB"},
    {"unit", "active_bytes.all.peak / 2**30", "@unit=GiB"},
    {"unit", "differences fit gib", "@unit=GiB"},
    {"unit", "values are gib", "@unit=GiB"},
};

}  // namespace

std::span<const RunWord> RunWords() {
  return kWords;
}

std::string PlainWord(std::string_view text) {
  std::string plain;
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : 0;
    if (depth == 0) {
      plain += c;
    }
    depth -= c == ')' && depth > 0 ? 1 : 0;
  }
  for (std::size_t at = plain.find("  "); at != std::string::npos; at = plain.find("  ")) {
    plain.erase(at, 1);
  }
  const std::size_t first = plain.find_first_not_of(' ');
  const std::size_t last = plain.find_last_not_of(' ');
  return first == std::string::npos ? "" : LowerCase(plain.substr(first, last - first + 1));
}

const RunWord* FindRunWord(std::string_view field, std::string_view text) {
  const std::string whole = LowerCase(text);
  const std::string plain = PlainWord(text);
  for (const std::string& wanted : {whole, plain}) {
    const auto word = std::ranges::find_if(kWords, [&](const RunWord& candidate) {
      return candidate.field == field && candidate.word == wanted;
    });
    if (word != std::end(kWords)) {
      return word;
    }
  }
  return nullptr;
}

const RunWord* FindRunPhrase(std::string_view field, std::string_view text) {
  const std::string lower = LowerCase(text);
  const auto word = std::ranges::find_if(kWords, [&](const RunWord& candidate) {
    return candidate.field == field && lower.find(candidate.word) != std::string::npos;
  });
  return word == std::end(kWords) ? nullptr : word;
}

}  // namespace fourpiles
