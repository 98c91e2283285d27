// The whole of a program that trains on what a pipeline delivers: train FOLDER, with digits.yaml in
// it.

// [embed]
#include <forebay/pipeline.h>
#include <forebay/torch.h>
#include <torch/torch.h>

#include <iostream>

double train(const std::string& folder) {
  auto pipeline = forebay::Pipeline::from_file(folder + "/digits.yaml");
  torch::nn::Sequential net(torch::nn::Flatten(), torch::nn::Linear(784, 64), torch::nn::ReLU(),
                            torch::nn::Linear(64, 10));
  net->to(pipeline.device().is_cuda() ? torch::kCUDA : torch::kCPU);
  torch::optim::Adam optimizer(net->parameters());
  torch::Tensor loss;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (auto& batch : forebay::torch::batches(pipeline, epoch)) {  // the host does not wait
      loss = torch::cross_entropy_loss(net->forward(batch["image"]), batch["label"]);  // no copy
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    std::cout << "epoch " << epoch << ": loss " << loss.item<double>() << '\n';
  }
  return loss.item<double>();
}
// [/embed]

int main(int argc, char** argv) try {
  if (argc != 2) throw std::invalid_argument("usage: train FOLDER");
  return train(argv[1]) < 0.7 ? 0 : 1;  // 2.3 before training
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
